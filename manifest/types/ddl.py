"""Parser of column lists in Spark's and Paimon's syntax.

As in ``id BIGINT NOT NULL, tags MAP<STRING, INT> COMMENT 'x'``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from manifest.io.errors import InvalidSchema
from manifest.types.data_type import DataField, DataType, number_fields
from paimon_base.errors import UnsupportedType
from sparkexpr.values.column_type import Kind

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|\"[^\"]+\"|'(?:[^']|'')*'|\w+|[<>(),:.])")
_MAX_DEPTH = 50
_NEED_LENGTH = {"CHAR": "STRING", "VARCHAR": "STRING", "VARBINARY": "BYTES"}
"""Types that Paimon gives one character or byte without a length, and the type that has no length."""
_CONSTRUCTED = frozenset({"ARRAY", "MULTISET", "MAP", "STRUCT", "ROW", "VECTOR"})


def parse_ddl(text: str) -> tuple[DataField, ...]:
    """Return the columns of a DDL list.

    Ids start from 0. Raises ``InvalidSchema`` with the position of the error.

    >>> [f"{field.name} {field.type}" for field in parse_ddl("id BIGINT NOT NULL, attrs MAP<STRING, INT>, p STRUCT<x: DOUBLE>")]
    ['id BIGINT NOT NULL', 'attrs MAP<STRING NOT NULL, INT>', 'p ROW<x DOUBLE>']
    """
    parser = _Parser(text)
    fields = parser.fields(end="")
    if not fields:
        raise InvalidSchema("the column list is empty")
    return number_fields(fields)


@dataclass(frozen=True)
class TableDdl:
    """Columns and keys in a DDL text."""

    fields: tuple[DataField, ...]
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None


def parse_table_ddl(text: str) -> TableDdl:
    """Parse a column list with optional keys.

    Accepts ``PRIMARY KEY (...)`` in it, ``PARTITIONED BY (...)`` behind it, and ``CREATE TABLE name (...)`` around it.

    >>> ddl = parse_table_ddl("CREATE TABLE t (id BIGINT, day DATE, PRIMARY KEY (day, id) NOT ENFORCED) PARTITIONED BY (day) COMMENT 'x'")
    >>> ddl.primary_keys, ddl.partition_keys, ddl.comment
    (('day', 'id'), ('day',), 'x')
    """
    return _Parser(text).table()


class _Parser:
    """Recursive descent parser."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        self.depth = 0
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise InvalidSchema(f"column list: cannot read {text[position : position + 20]!r} at position {position}")
            self.tokens.append((match[1], match.start(1)))
            position = match.end()
        self.next = 0

    def peek(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.next += 1
        return token

    def accept(self, *words: str) -> bool:
        tokens = [token.upper() for token, _ in self.tokens[self.next : self.next + len(words)]]
        if tokens != list(words):
            return False
        self.next += len(words)
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.error(f"'{word}' is missing")

    def error(self, what: str) -> InvalidSchema:
        position = self.tokens[self.next][1] if self.next < len(self.tokens) else len(self.text)
        behind = f"before {self.text[position : position + 20]!r}" if position < len(self.text) else "at its end"
        return InvalidSchema(f"column list: {what} at position {position}, {behind}")

    def table(self) -> TableDdl:
        created = self.accept("CREATE", "TABLE")
        if created:
            self.accept("IF", "NOT", "EXISTS")
            while self.peek() not in {"(", ""}:
                self.take()
        wrapped = self.accept("(")
        if created and not wrapped:
            raise self.error("'(' is missing")
        keys: dict[str, tuple[str, ...]] = {}
        fields = self.fields(end=")" if wrapped else "", keys=keys)
        if wrapped:
            self.expect(")")
        comment = None
        while self.peek():
            if self.accept("PARTITIONED", "BY"):
                self.key("partition", keys)
            elif self.accept("COMMENT"):
                comment = self.take()[1:-1].replace("''", "'")
            else:
                raise self.error("unexpected text; pass options as options={...}")
        if not fields:
            raise InvalidSchema("the column list is empty")
        return TableDdl(number_fields(fields), keys.get("primary", ()), keys.get("partition", ()), comment)

    def key(self, kind: str, keys: dict[str, tuple[str, ...]]) -> None:
        if kind in keys:
            raise self.error(f"a second {kind} key")
        self.expect("(")
        names = [self.name()]
        while self.accept(","):
            names.append(self.name())
        self.expect(")")
        keys[kind] = tuple(names)

    def fields(self, end: str, keys: dict[str, tuple[str, ...]] | None = None) -> list[DataField]:
        fields: list[DataField] = []
        while self.peek() != end:
            if fields and not self.accept(","):
                raise self.error(f"'{end or ','}' is missing" if end and not self.peek() else "',' is missing")
            if keys is not None and self.accept("PRIMARY", "KEY", "("):
                self.next -= 1
                self.key("primary", keys)
                self.accept("NOT", "ENFORCED")
            else:
                fields.append(self.one_field())
            if keys is not None and not end and self.peek().upper() in {"PARTITIONED", "COMMENT"}:
                break
        return fields

    def name(self) -> str:
        name = self.take()
        if name[:1] in {"`", '"'}:
            return name[1:-1].replace("``", "`")
        if not name or not (name[0].isalpha() or name[0] == "_"):
            self.next -= 1
            raise self.error("a column name is missing")
        return name

    def one_field(self) -> DataField:
        name = self.name()
        self.accept(":")
        data_type = self.data_type(name)
        comment = None
        if self.accept("COMMENT"):
            quoted = self.take()
            comment = quoted[1:-1].replace("''", "'")
        return DataField(-1, name, data_type, comment)

    def data_type(self, column: str) -> DataType:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"types are nested deeper than {_MAX_DEPTH}")
        root = self.take().upper()
        data_type = self.nested(root, column) if root in _CONSTRUCTED else self.atomic(root, column)
        self.depth -= 1
        if self.accept("NOT", "NULL"):
            return data_type.with_nullable(nullable=False)
        self.accept("NULL")
        return data_type

    def nested(self, root: str, column: str) -> DataType:
        self.expect("<")
        if root in {"STRUCT", "ROW"}:
            data_type = DataType(Kind.ROW, fields=tuple(self.fields(end=">")))
        elif root == "MAP":
            key = self.data_type(column).with_nullable(nullable=False)
            if not self.accept(","):
                raise self.error(f"column '{column}' is a MAP with one type, but needs two: MAP<STRING, INT>;")
            data_type = DataType(Kind.MAP, key=key, value=self.data_type(column))
        elif root == "VECTOR":
            element = self.data_type(column)
            if not self.accept(",") or not self.peek().isdecimal():
                raise self.error(f"column '{column}' is a VECTOR without a length: VECTOR<FLOAT, 3>;")
            data_type = DataType(Kind.VECTOR, element=element, length=int(self.take()))
        else:
            data_type = DataType(Kind(root), element=self.data_type(column))
        self.expect(">")
        return data_type

    def atomic(self, root: str, column: str) -> DataType:
        words = ["BYTES" if root == "BINARY" and self.peek() != "(" else root]  # as in Spark
        if not (root[:1].isalpha() or root[:1] == "_"):
            self.next -= 1
            raise self.error(f"column '{column}' has no type: write it as in \"{column} STRING\"")
        if root == "DOUBLE" and self.accept("PRECISION"):
            words.append("PRECISION")
        if root in _NEED_LENGTH and self.peek() != "(":
            raise UnsupportedType(f"column '{column}': {root} needs a length: {root}(20); {_NEED_LENGTH[root]} has none")
        if self.accept("("):
            words.append("(")
            while self.peek() not in {")", ""}:
                words.append(self.take())
            self.expect(")")
            words.append(")")
        for zone in (("WITH", "LOCAL", "TIME", "ZONE"), ("WITHOUT", "TIME", "ZONE")):
            if self.accept(*zone):
                words.extend(zone)
        try:
            return DataType.from_json(" ".join(words))
        except UnsupportedType as error:
            raise UnsupportedType(f"column '{column}': {error}") from error
