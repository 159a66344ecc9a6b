"""Relations of a query: one walk finds every place where a table may be named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from pyspark_paimon.plugins.sql.text.words import NameParts, TokenCursor

_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
_SETS = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})
_CLAUSES = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "PARTITION"})
"""Words that start a clause before BY."""
_AFTER_LIST = frozenset(
    {"WHERE", "SELECT", "HAVING", "LIMIT", "OFFSET", "WINDOW", "LATERAL", "QUALIFY", "SET", "INSERT", "|>", *_CLAUSES, *_SETS}
)
"""Words after which a comma separates no relations."""
_NO_NAMES = frozenset({"", "(", ")", ",", ".", "="})
_AFTER_COLUMN = frozenset(
    {"AS", "IS", "IN", "NOT", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "AND", "OR", "DIV", "FROM", "ASC", "DESC", "NULLS"}
)
"""Words that may follow a column named ``table``."""
_EXPLAINS = frozenset({"EXPLAIN", "EXTENDED", "FORMATTED", "CODEGEN", "COST"})
_MAKERS = frozenset({"CREATE", "CACHE", "REPLACE"})
"""First words of statements that have a query after AS."""
_TARGETS = frozenset({"INTO", "OVERWRITE"})
_CALLED = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


@dataclass(frozen=True)
class Relation:
    """Name of a table, view or function that a query reads.

    word: Index of the first word of the name.
    start: Position of the name in the text.
    table: Index of the word TABLE before it. None: FROM, JOIN or a comma is before it.
    is_argument: ``TABLE name`` is an argument of a table function.
    is_common: The name means a common table expression (WITH).
    """

    word: int
    start: int
    table: int | None
    is_argument: bool
    is_common: bool


@dataclass
class _Frame:
    """A bracket, or the statement.

    is_query: FROM names tables in it. It is an argument of a function otherwise.
    is_list: A comma separates relations.
    expects: The next name or bracket is a relation.
    in_values: The words are rows of VALUES.
    common: Names of common table expressions that are visible.
    defines: WITH is being read; the next bracket is the query of ``defined``.
    """

    is_query: bool
    common: frozenset[str]
    is_function: bool = False
    is_list: bool = False
    expects: bool = False
    in_values: bool = False
    defines: bool = False
    is_recursive: bool = False
    defined: str = ""
    ends_definition: bool = False
    first: int = 0


@dataclass
class _Walk:
    words: TokenCursor
    frames: list[_Frame] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.texts = [self._text(index) for index in range(len(self.words.tokens))]
        self.closings, opened = dict[int, int](), list[int]()
        for index, text in enumerate(self.texts):
            if text == "(":
                opened.append(index)
            elif text == ")" and opened:
                self.closings[opened.pop()] = index

    def _text(self, index: int) -> str:
        self.words.at = index
        return self.words.peek()

    def text(self, index: int) -> str:
        return self.texts[index] if 0 <= index < len(self.texts) else ""

    def relations(self) -> Iterator[Relation]:
        self.frames, index = [_Frame(is_query=True, common=frozenset())], 0
        while index < len(self.texts):
            frame, text = self.frames[-1], self.texts[index]
            if text == "(":
                self._open(index)
            elif text == ")" and len(self.frames) > 1:
                self._close(index)
            elif frame.defines:
                self._define(index)
            elif frame.expects and text == "STREAM" and self._is_prefix(index):
                pass  # the name follows
            elif frame.expects and self._is_name(index):
                relation, index = self._named(index, None)
                yield relation
                continue
            elif text == "TABLE" and (named := self._table(index)) is not None:
                is_bracketed = named > index + 1
                relation, index = self._named(named, index)
                if is_bracketed:
                    self.frames.append(_Frame(is_query=False, common=frame.common, is_function=True, first=index))
                yield relation
                continue
            else:
                self._step(index)
            index += 1

    def _is_name(self, index: int) -> bool:
        is_quoted = self.words.tokens[index].kind is TokenType.IDENTIFIER
        return is_quoted or self.texts[index] not in _NO_NAMES | {"LATERAL", "VALUES", "SELECT"}

    def _is_prefix(self, index: int) -> bool:
        return self.text(index + 1) == "(" or (index + 1 < len(self.texts) and self.words.tokens[index + 1].kind in _CALLED)

    def _named(self, index: int, table: int | None) -> tuple[Relation, int]:
        frame = self.frames[-1]
        frame.expects = False
        self.words.at = index
        name = self.words.name()
        is_common = len(name) == 1 and name[0].lower() in frame.common
        return Relation(index, self.words.tokens[index].start, table, frame.is_function, is_common), self.words.at

    def _table(self, index: int) -> int | None:
        """Return the index of the name after the word TABLE of a query. None: the word is something else."""
        frame, before = self.frames[-1], self.text(index - 1)
        starts = index == frame.first or (frame.is_function and before in {",", "=>"}) or self._follows_set(index)
        if len(self.frames) == 1 and index:  # INSERT INTO t TABLE u, CREATE VIEW v AS TABLE u
            statement = self.texts[0]
            starts = starts or (statement == "EXPLAIN" and before in _EXPLAINS) or (statement in _MAKERS and before == "AS")
            starts = starts or (statement == "INSERT" and before not in _TARGETS)
        if not (starts or frame.ends_definition):
            return None
        following = self.text(index + 1)
        if following == "(" and frame.is_function and self.text(index + 2) not in _QUERIES:
            return index + 2
        if index + 1 >= len(self.texts) or following in _NO_NAMES | _AFTER_COLUMN:
            return index + 1 if index + 1 < len(self.texts) and self.words.tokens[index + 1].kind is TokenType.IDENTIFIER else None
        return index + 1 if following[:1].isalpha() or following[:1] == "_" else None

    def _follows_set(self, index: int) -> bool:
        before = self.text(index - 1)
        return before in _SETS or (before in {"ALL", "DISTINCT"} and self.text(index - 2) in _SETS)

    def _open(self, index: int) -> None:
        frame, first = self.frames[-1], self.text(index + 1)
        new = _Frame(is_query=first in _QUERIES and not self._is_call(index), common=frame.common, first=index + 1)
        if frame.defines:
            after = self.text(self.closings.get(index, index) + 1)
            if after not in {"(", "AS", "MAX"}:  # the query, not a list of columns
                frame.ends_definition = True
                new.common |= {frame.defined} if frame.is_recursive else set()
        elif frame.expects and not new.is_query:  # FROM (t JOIN u)
            new.is_query = new.is_list = new.expects = True
        elif not new.is_query:
            new.is_function = True
        frame.expects = False
        self.frames.append(new)

    def _is_call(self, index: int) -> bool:
        """Return whether a bracket that begins with TABLE has the arguments of a function."""
        is_target = len(self.frames) == 1 and self.texts[0] == "INSERT"  # INSERT INTO t (TABLE u)
        is_named = index > 0 and self.words.tokens[index - 1].kind in _CALLED and not self.frames[-1].defines and not is_target
        return is_named and self.text(index + 1) == "TABLE"

    def _close(self, index: int) -> None:
        self.frames.pop()
        frame = self.frames[-1]
        if frame.defines and frame.ends_definition:
            frame.common |= {frame.defined}
            frame.defined = ""
            frame.defines, frame.ends_definition = self.text(index + 1) == ",", self.text(index + 1) != ","

    def _define(self, index: int) -> None:
        """Read a word of WITH: the name of a common table expression, or a word around it."""
        frame, text = self.frames[-1], self.texts[index]
        if text == "RECURSIVE" and not frame.defined and self.text(index + 1) not in {"(", "AS"}:
            frame.is_recursive = True
        elif text != "," and not frame.defined:
            frame.defined = self.words.tokens[index].text.lower()

    def _step(self, index: int) -> None:
        """Read a word of a query that names no relation."""
        frame, text, before = self.frames[-1], self.texts[index], self.text(index - 1)
        is_source = text == "FROM" and (self._follows_set(index) or (frame.is_query and before != "DISTINCT"))
        if text == "WITH" and self._starts_definitions(index):
            frame.defines, frame.is_recursive, frame.defined = True, False, ""
            return
        if text != "LATERAL" or not frame.expects:
            starts_relation = is_source or (frame.is_query and text == "JOIN") or (text == "," and frame.is_list and not frame.in_values)
            frame.in_values = self._in_values(index)
            frame.expects = starts_relation
            frame.is_query = frame.is_query or text == "SELECT" or text in _SETS
            frame.is_list = is_source or (frame.is_list and text not in _AFTER_LIST)
        frame.ends_definition = False

    def _in_values(self, index: int) -> bool:
        """Return whether the next bracket or comma is one of VALUES."""
        frame, text = self.frames[-1], self.texts[index]
        if text == "VALUES":
            return frame.expects or index == frame.first
        # An alias, or a clause, follows the last row.
        is_alias = text == "AS" or (self.text(index - 1) == ")" and text != ",")
        return frame.in_values and not is_alias and text not in _AFTER_LIST

    def _starts_definitions(self, index: int) -> bool:
        """Return whether WITH defines common table expressions: not of INSERT ... WITH (options), nor of a type."""
        name = index + 2 if self.text(index + 1) == "RECURSIVE" else index + 1
        return name < len(self.texts) and self.text(name) not in _NO_NAMES - {""} and self.text(name + 1) in {"(", "AS", "MAX"}


def relations(words: TokenCursor) -> list[Relation]:
    """Return the relations of a query in the order of the text.

    >>> text = "WITH c AS (TABLE a) SELECT * FROM c JOIN d.b x ON x.i IN (SELECT i FROM e, c) LATERAL VIEW explode(m) l AS k, v"
    >>> [text[each.start:].split()[0].strip("),") for each in relations(TokenCursor(text)) if not each.is_common]
    ['a', 'd.b', 'e']
    """
    return list(_Walk(words).relations())


def insert_targets(words: TokenCursor) -> list[NameParts]:
    """Return the tables that ``FROM t INSERT INTO a SELECT ... INSERT INTO b SELECT ...`` writes.

    >>> insert_targets(TokenCursor("FROM t INSERT INTO TABLE a SELECT x INSERT OVERWRITE d.b SELECT y")), insert_targets(TokenCursor("SELECT 1"))
    ([('a',), ('d', 'b')], [])
    """
    targets = []
    for index in range(len(words.tokens)):
        words.at = index
        if words.take("INSERT", "INTO") or words.take("INSERT", "OVERWRITE"):
            words.take("TABLE")
            targets.append(words.name())
    return targets


def without_table_words(text: str) -> str:
    """Return a query with ``SELECT * FROM t`` in place of ``TABLE t``.

    >>> without_table_words("TABLE a UNION (TABLE b)"), without_table_words("SELECT * FROM f(TABLE (d.g), 1)")
    ('SELECT * FROM a UNION (SELECT * FROM b)', 'SELECT * FROM f(TABLE (SELECT * FROM d.g), 1)')
    """
    words, parts, end = TokenCursor(text), list[str](), 0
    for relation in relations(words):
        if relation.table is None:
            continue
        words.at = relation.word
        words.name()
        last = words.tokens[words.at - 1].end + 1
        is_bracketed = words.tokens[relation.word - 1].text == "("
        parts.append(text[end : words.tokens[relation.table].start])
        before, after = ("TABLE (", "" if is_bracketed else ")") if relation.is_argument else ("", "")
        parts += [f"{before}SELECT * FROM ", text[relation.start : last], after]  # noqa: S608  # the user's own SQL
        end = last
    return "".join([*parts, text[end:]])


def skip_sample(words: TokenCursor) -> None:
    """Move behind TABLESAMPLE, which stands between a table and its alias."""
    for word in ("TABLESAMPLE", "REPEATABLE"):
        if not words.take(word):
            return
        words.expect("(")
        words.until()
        words.expect(")")


def has_alias(words: TokenCursor) -> bool:
    """Return whether an alias of a table comes next."""
    if words.done or (words.peek() in _CLAUSES and words.peek(1) == "BY"):
        return False
    return words.peek() == "AS" or words.tokens[words.at].kind in {TokenType.VAR, TokenType.IDENTIFIER}
