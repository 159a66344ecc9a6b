"""The mutations of a module: small changes of its text, each at one place.

A mutation replaces the text of one node of the syntax tree, so that its diff shows nothing else. Left alone are annotations, texts,
``__all__``, imports, decorators, log calls and the arguments of errors: such mutations change what a person reads, or nothing.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_WORD_OF: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Div: "/",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "//",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "|",
}
_SWAPPED_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "flatnonzero": "ravel"}
_EMPTY = {"list": "[]", "dict": "{}", "tuple": "()", "set": "set()", "frozenset": "frozenset()", "str": '""', "bytes": 'b""', "int": "0"}


@dataclass(frozen=True)
class Mutation:
    """One change of a module.

    Attributes:
        module: The file, relative to the root.
        function: The qualified name of the function or class around it; empty at module level.
        operator: The kind of change.
        first: The first line of the changed statement.
        last: The last line of the changed node.
        start: The position of the changed text in the encoded source.
        before: The text that is replaced.
        after: The text that replaces it.
        key: A hash of module, function, operator and change that does not depend on line numbers.
    """

    module: str
    function: str
    operator: str
    first: int
    last: int
    start: int
    before: str
    after: str
    key: str = ""

    def apply(self, source: str) -> str:
        """Return the changed source."""
        encoded, before = source.encode(), self.before.encode()
        if encoded[self.start : self.start + len(before)] != before:
            raise ValueError(f"{self.module} has changed since its mutations were listed: there is no {self.before!r} at {self.start}")
        return (encoded[: self.start] + self.after.encode() + encoded[self.start + len(before) :]).decode()

    def is_valid(self, source: str) -> bool:
        """Return whether the changed source parses and differs in more than its layout."""
        try:
            return ast.dump(ast.parse(self.apply(source))) != ast.dump(ast.parse(source))
        except SyntaxError:
            return False

    def diff(self, source: str) -> str:
        """Return the change as a unified diff."""
        lines = difflib.unified_diff(source.splitlines(), self.apply(source).splitlines(), self.module, self.module, lineterm="", n=1)
        return "\n".join(lines)


def mutations(module: str, source: str) -> list[Mutation]:
    """Return all mutations of a module, in the order of its text."""
    finder = _Finder(module, source)
    finder.visit(ast.parse(source))
    unique = {(mutation.start, mutation.before, mutation.after): mutation for mutation in finder.found}
    seen: Counter[str] = Counter()
    found = []
    for _, mutation in sorted(unique.items()):
        content = repr((module, mutation.function, mutation.operator, mutation.before, mutation.after))
        seen[content] += 1  # the same change at several places of a function: numbered
        key = hashlib.sha256(f"{content} {seen[content]}".encode()).hexdigest()[:12]
        found.append(replace(mutation, key=key))
    return found


class _Finder(ast.NodeVisitor):
    def __init__(self, module: str, source: str) -> None:
        self.found: list[Mutation] = []
        self._module = module
        self._encoded = source.encode()
        self._line_starts = [0]
        for line in self._encoded.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._scopes: list[str] = []
        self._statements: list[ast.stmt] = []

    # What surrounds a change

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            if _is_left_alone(node):
                return
            self._statements.append(node)
            super().visit(node)
            self._statements.pop()
        else:
            super().visit(node)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self._line_starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return start, self._line_starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._encoded[start:end].decode()

    def _replace(self, operator: str, node: ast.AST, after: str) -> None:
        self._change(operator, *self._span(node), after, node.end_lineno)  # type: ignore[attr-defined]

    def _change(self, operator: str, start: int, end: int, after: str, last: int) -> None:
        before = self._encoded[start:end].decode()
        if before != after:
            first = self._statements[-1].lineno
            self.found.append(Mutation(self._module, ".".join(self._scopes), operator, first, last, start, before, after))

    def _between(self, operator: str, left: ast.AST, right: ast.AST, before: str, after: str) -> None:
        """Replace a word that stands between two nodes."""
        start, end = self._span(left)[1], self._span(right)[0]
        at = self._encoded[start:end].decode().find(before)
        if at >= 0:
            start += len(self._encoded[start:end].decode()[:at].encode())
            self._change(operator, start, start + len(before), after, right.lineno)  # type: ignore[attr-defined]

    # Scopes

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scopes.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._scopes.append(node.name)
        for default in (*node.args.defaults, *(found for found in node.args.kw_defaults if found is not None)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Python before 3.12 gives wrong positions inside f-strings."""

    # Operators

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for at, operator in enumerate(node.ops):
            before, after = _COMPARISONS[type(operator)]
            self._between("comparison", operands[at], operands[at + 1], before, after)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("and or", left, right, word, other)
            self._change("drop operand", self._span(left)[0], self._span(right)[0], "", right.lineno)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace("not", node, f"bool({self._text(node.operand)})")
        elif isinstance(node.op, ast.USub | ast.Invert):
            self._replace("sign", node, self._text(node.operand))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if node.value is True or node.value is False:
            self._replace("boolean", node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace("integer", node, str(node.value + 1))
            if node.value > 0:
                self._replace("integer", node, str(node.value - 1))

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if after := _ARITHMETIC.get(type(node.op)):
            self._between("arithmetic", node.left, node.right, _WORD_OF[type(node.op)], after)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if after := _ARITHMETIC.get(type(node.op)):
            self._between("arithmetic", node.target, node.value, f"{_WORD_OF[type(node.op)]}=", f"{after}=")
            self._replace("drop statement", node, "pass")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._replace("condition", test, "True")
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare | ast.UnaryOp | ast.Constant):
            self._replace("condition", test, f"not ({self._text(test)})")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            for after in self._other_values(node.value):
                self._replace("return", node.value, after)
        self.generic_visit(node)

    def _other_values(self, value: ast.expr) -> Iterator[str]:
        """Return values that the function's annotation allows."""
        function = next((found for found in reversed(self._statements) if isinstance(found, ast.FunctionDef)), None)
        annotation = "" if function is None or function.returns is None else ast.unparse(function.returns)
        if annotation == "bool":
            yield from ("True", "False")
        if annotation.endswith("| None") and not (isinstance(value, ast.Constant) and value.value is None):
            yield "None"
        outer = annotation.partition("[")[0].partition(" ")[0]
        if outer in _EMPTY:
            yield _EMPTY[outer]

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._replace("drop statement", node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace("drop raise", node, "pass")  # its arguments are text

    def visit_Break(self, node: ast.Break) -> None:
        self._replace("break continue", node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace("break continue", node, "break")

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None:
                self._replace("slice", bound, "")
                if not isinstance(bound, ast.Constant):
                    self._replace("slice", bound, f"({self._text(bound)}) + 1")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in _SWAPPED_NAMES:
            start, end = self._span(node.func)
            self._change("other function", end - len(name), end, _SWAPPED_NAMES[name], node.func.end_lineno or node.lineno)
        if name not in {"isinstance", "issubclass", "getattr", "hasattr", "cast"}:
            for left, right in zip(node.args, node.args[1:], strict=False):
                if not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
                    start, end = self._span(left)[0], self._span(right)[1]
                    middle = self._encoded[self._span(left)[1] : self._span(right)[0]].decode()
                    swapped = f"{self._text(right)}{middle}{self._text(left)}"
                    self._change("swap arguments", start, end, swapped, right.end_lineno or right.lineno)
        for keyword in node.keywords:
            if keyword.arg == "strict":
                continue  # of zip: a check of our own code
            self.visit(keyword.value)
            if keyword.arg and not isinstance(keyword.value, ast.Constant):
                start, end = self._span(keyword)
                rest = self._encoded[end:].decode()
                comma = len(rest) - len(rest.lstrip(" ,\n")) if rest.lstrip()[:1] == "," else 0
                self._change("drop keyword", start, end + comma, "", keyword.value.end_lineno or keyword.value.lineno)
        for part in (node.func, *node.args):
            self.visit(part)


def _is_left_alone(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="_LOG")))):
            return True
        case _:
            return False
