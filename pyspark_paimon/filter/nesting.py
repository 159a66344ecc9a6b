"""Parsing of filters with deeply nested parentheses."""

# sqlglot makes about twenty Python calls for each level of parentheses: inner groups are parsed first to stay below the recursion limit.

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from fileindex.base.errors import InvalidFilter
from fileindex.base.thresholds import thresholds

MOST_PARENTHESES = 1000
_BEFORE_A_GROUP = {TokenType.L_PAREN, TokenType.AND, TokenType.OR, TokenType.NOT}
_GROUP = "_grouped_"


@dataclass
class _Open:
    """Text pieces of a parenthesis that is still open.

    groups: Whether it groups a condition, and is not a list or a call.
    depth: Levels of unparsed parentheses inside it.
    """

    groups: bool
    pieces: list[str] = field(default_factory=list)
    depth: int = 0


def parse_by_groups(text: str, tokenize: Callable[[str], list[Any]], parse: Callable[[str], exp.Expression]) -> exp.Expression:
    """Parse ``text``, group by group if its parentheses are deep.

    Raises ``InvalidFilter`` beyond MOST_PARENTHESES levels.
    """
    deepest = max(accumulate(1 if letter == "(" else -1 for letter in re.findall(r"[()]", text))) if "(" in text else 0
    if deepest <= thresholds().nested_groups:
        return parse(text)
    if deepest > MOST_PARENTHESES:
        raise InvalidFilter(f"the filter nests too deeply: it has more than {MOST_PARENTHESES} levels of parentheses")
    return _in_groups(text, tokenize(text), parse)


def _in_groups(text: str, tokens: list[Any], parse: Callable[[str], exp.Expression]) -> exp.Expression:
    known: dict[str, exp.Expression] = {}
    stack = [_Open(groups=False)]
    end, before = 0, None
    for token in tokens:
        stack[-1].pieces.append(text[end : token.start])
        end = token.end + 1
        if token.token_type is TokenType.L_PAREN:
            stack.append(_Open(groups=before is None or before in _BEFORE_A_GROUP))
        elif token.token_type is TokenType.R_PAREN and len(stack) > 1:
            _close(stack, known, parse)
        else:
            stack[-1].pieces.append(text[token.start : end])
        before = token.token_type
    if len(stack) > 1:
        return parse(text[:end])  # raises with the position of the missing parenthesis
    return _insert_groups("".join(stack[0].pieces) + text[end:], known, parse)


def _close(stack: list[_Open], known: dict[str, exp.Expression], parse: Callable[[str], exp.Expression]) -> None:
    group, around = stack.pop(), stack[-1]
    inside = "".join(group.pieces)
    if group.groups and group.depth >= thresholds().nested_groups:
        name = f"{_GROUP}{len(known)}"
        known[name] = _insert_groups(inside, known, parse)
        around.pieces.append(f" :{name} ")
    else:
        around.pieces.append(f"({inside})")
        around.depth = max(around.depth, group.depth + 1)


def _insert_groups(text: str, known: dict[str, exp.Expression], parse: Callable[[str], exp.Expression]) -> exp.Expression:
    tree = parse(text)
    for node in list(tree.find_all(exp.Placeholder)):
        if node.name in known:
            group = exp.Paren(this=known[node.name])
            if node is tree:
                tree = group
            else:
                node.replace(group)
    return tree


__all__ = ["MOST_PARENTHESES", "parse_by_groups"]
