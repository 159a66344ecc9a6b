"""The table options of file indexes.

They declare which columns and map entries get which index, and where the container is stored. Their keys begin with ``file-index.``. Keys of
index types that Paimon does not have begin with the type: Paimon's engine refuses to write a table with an unknown type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from fileindex.format.container import OWN_SUFFIXES, ROW_BLOCKS, stored_name
from fileindex.format.registry import INDEX_TYPES, block_rows_of
from fileindex.predicate.tree import ColumnRef
from paimon_base.errors import PaimonError, UnknownColumn, UnsupportedOption
from paimon_base.memory_size import parse_memory_size
from sparkexpr.values.column_type import STRINGS, TIMESTAMPS, ColumnType, Kind

OPTION_PREFIX = "file-index."
COLUMNS_OPTION = ".columns"
IN_MANIFEST_THRESHOLD = "file-index.in-manifest-threshold"
READ_ENABLED = "file-index.read.enabled"
_BLOOM = "bloom-filter"
_OWN_TYPES = OWN_SUFFIXES.keys() & INDEX_TYPES
_OWN_PREFIXES = tuple(f"{name}." for name in _OWN_TYPES)
DEFAULT_THRESHOLD = 500


def index_option(key: str) -> str | None:
    """Return the key of a file index option without ``file-index.``.

    None: another option.

    >>> index_option("file-index.bitmap.columns"), index_option("ngram-filter.columns"), index_option("bucket")
    ('bitmap.columns', 'ngram-filter.columns', None)
    """
    return key.removeprefix(OPTION_PREFIX) if key.startswith((OPTION_PREFIX, *_OWN_PREFIXES)) else None


def option_key(index_type: str, *names: str) -> str:
    """Return the key of an option of an index type.

    >>> option_key("bitmap", "columns"), option_key("ngram-filter", "s", "size")
    ('file-index.bitmap.columns', 'ngram-filter.s.size')
    """
    prefix = "" if index_type in _OWN_TYPES else OPTION_PREFIX
    return prefix + ".".join([index_type, *names])


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """Declaration of one index on a column or map entry.

    ``block_rows`` is the number of rows per block of its row blocks (``format.row_blocks``). 0: it has no row blocks.
    """

    column: ColumnRef
    index_type: str
    options: Mapping[str, str] = field(default_factory=dict)
    block_rows: int = 0

    def of(self, column: ColumnRef, column_types: Mapping[str, ColumnType]) -> Self:
        """Return the same index on a column of another schema.

        Without row blocks if that schema has a column with their name.
        """
        is_used = stored_name(str(column), ROW_BLOCKS) in column_types
        return replace(self, column=column, block_rows=0 if is_used else self.block_rows)

    def is_hidden_by(self, column_types: Mapping[str, ColumnType]) -> bool:
        """Return whether the name under which it is stored is a column."""
        return self.index_type in OWN_SUFFIXES and stored_name(str(self.column), self.index_type) in column_types


@dataclass(frozen=True, slots=True)
class FileIndexOptions:
    """The parsed file index options of a table.

    Attributes:
        specs: Indexes to build, in the order of their declaration.
        in_manifest_threshold: Bytes. A larger container becomes a separate file.
        read_enabled: Use indexes when planning and reading.
        ignored: Reasons why declared indexes are missing in ``specs`` (only if parsed with ``strict=False``).
    """

    specs: tuple[IndexSpec, ...] = ()
    in_manifest_threshold: int = DEFAULT_THRESHOLD
    read_enabled: bool = True
    ignored: tuple[str, ...] = ()

    @classmethod
    def parse(cls, raw: Mapping[str, str], column_types: Mapping[str, ColumnType], *, strict: bool = True) -> FileIndexOptions:
        """Parse a table's options.

        Other options are ignored.

        Args:
            raw: All options of the table.
            column_types: The table's columns.
            strict: Raise for an index that cannot be built. If False, omit it and add the reason to ``ignored``.

        Raises:
            UnsupportedOption: Naming the key, if a column does not exist or has a type the index does not support.
                Also for an unknown index type, option or value.

        >>> types = {"id": ColumnType(Kind.BIGINT), "attrs": ColumnType(Kind.MAP, key=ColumnType(Kind.VARCHAR), value=ColumnType(Kind.INT))}
        >>> options = FileIndexOptions.parse({"file-index.bitmap.columns": "id, attrs[clicks]", "file-index.bitmap.attrs.version": "1"}, types)
        >>> [(str(spec.column), spec.index_type, spec.options) for spec in options.specs]
        [('id', 'bitmap', {}), ('attrs[clicks]', 'bitmap', {'version': '1'})]
        """
        ignored: list[str] = []
        threshold, enabled = DEFAULT_THRESHOLD, True
        try:
            threshold = parse_memory_size(raw.get(IN_MANIFEST_THRESHOLD, str(DEFAULT_THRESHOLD)), IN_MANIFEST_THRESHOLD)
            enabled = _boolean(raw.get(READ_ENABLED, "true"), READ_ENABLED)
        except UnsupportedOption as wrong:
            if strict:
                raise
            ignored.append(str(wrong))
        declarations = _Declarations()
        specs: list[IndexSpec] = []
        for step in (declarations.read_columns, declarations.read_options):
            for error in step(raw):
                if strict:
                    raise error
                ignored.append(str(error))
        for index_type, column in declarations.columns:
            spec = IndexSpec(column, index_type, declarations.options_of(index_type, column))
            try:
                _check(spec, column_types, partial(declarations.key_of, spec))
            except PaimonError as wrong:
                if strict:
                    raise
                ignored.append(str(wrong))
            else:
                specs.append(spec)
        return cls(tuple(_with_blocks(specs, column_types)), threshold, enabled, tuple(ignored))


def _with_blocks(specs: list[IndexSpec], column_types: Mapping[str, ColumnType]) -> Iterator[IndexSpec]:
    """Yield the indexes, bloom filters with row blocks.

    A bloom filter gets none if another index of its column finds single rows.
    """
    finds_rows = {spec.column for spec in specs if INDEX_TYPES[spec.index_type].grouping is not None}
    for spec in specs:
        alone = spec.index_type == _BLOOM and spec.column not in finds_rows
        yield replace(spec, block_rows=block_rows_of(spec.options)).of(spec.column, column_types) if alone else spec


class _Declarations:
    """Declared columns by index type, with their options.

    Entries of a map column inherit the options of the column.
    """

    def __init__(self) -> None:
        self.columns: dict[tuple[str, ColumnRef], None] = {}
        self._options: dict[tuple[str, str], dict[str, str]] = {}

    def read_columns(self, raw: Mapping[str, str]) -> Iterator[UnsupportedOption]:
        for key, text in raw.items():
            name = index_option(key)
            if name is None or not key.endswith(COLUMNS_OPTION):
                continue
            index_type = name[: -len(COLUMNS_OPTION)]
            if index_type in _OWN_TYPES and key != option_key(index_type, "columns"):
                yield UnsupportedOption(key, f"stops writes of Paimon's engine; write '{option_key(index_type, 'columns')}'")
                continue
            if not index_type:
                yield UnsupportedOption(key, "has no index type; write 'file-index.<type>.columns'")
                continue
            pieces = text.split(",")
            while len(pieces) > 1 and not pieces[-1]:
                pieces.pop()
            if not any(pieces) and "," in text:
                continue
            if not all(piece.strip() for piece in pieces):
                yield UnsupportedOption(key, f"'{text}' has an empty column name")
                continue
            for piece in pieces:
                self.columns[index_type, parse_column(piece.strip())] = None

    def read_options(self, raw: Mapping[str, str]) -> Iterator[UnsupportedOption]:
        declared = {(index_type, str(column)) for index_type, column in self.columns}
        declared |= {(index_type, column.name) for index_type, column in self.columns if column.key is not None}
        for key, text in raw.items():
            name = index_option(key)
            if name is None or key.endswith(COLUMNS_OPTION) or key in {IN_MANIFEST_THRESHOLD, READ_ENABLED}:
                continue
            index_type, *parts = name.split(".")
            if len(parts) != 2 or key != option_key(index_type, *parts):
                right = option_key(index_type if index_type in _OWN_TYPES else "<type>", "<column>", "<option>")
                yield UnsupportedOption(key, f"is not a file index option; write '{right}'")
                continue
            column, option = parts
            if (index_type, column) not in declared:
                yield UnsupportedOption(key, f"column '{column}' is not declared in '{option_key(index_type, 'columns')}'; add it there")
                continue
            self._options.setdefault((index_type, column), {})[option] = text

    def options_of(self, index_type: str, column: ColumnRef) -> dict[str, str]:
        inherited = self._options.get((index_type, column.name), {}) if column.key is not None else {}
        return {**inherited, **self._options.get((index_type, str(column)), {})}

    def key_of(self, spec: IndexSpec, option: str) -> str:
        """Return the key under which an index option was given.

        The column or entry has precedence over the map column of an entry.
        """
        of_entry = option in self._options.get((spec.index_type, str(spec.column)), {})
        of_map = option in self._options.get((spec.index_type, spec.column.name), {})
        return option_key(spec.index_type, spec.column.name if of_map and not of_entry else str(spec.column), option)


def parse_column(text: str) -> ColumnRef:
    """Parse a column name, or ``map[key]``.

    The key is the text between the first bracket and the last character.

    >>> parse_column("m[a[b]]")
    ColumnRef(name='m', key='a[b]')
    """
    if "[" in text and text.endswith("]"):
        name, _, rest = text.partition("[")
        return ColumnRef(name, rest[:-1])
    return ColumnRef(text)


def _check(spec: IndexSpec, column_types: Mapping[str, ColumnType], key_of: Callable[[str], str]) -> None:
    key = option_key(spec.index_type, "columns")
    index_type = INDEX_TYPES.get(spec.index_type)
    if index_type is None:
        raise UnsupportedOption(key, f"index type '{spec.index_type}' is unknown; known types: {', '.join(INDEX_TYPES)}")
    column_type = column_types.get(spec.column.name)
    if column_type is None:
        raise UnsupportedOption(key, str(UnknownColumn(spec.column.name, tuple(column_types))))
    if spec.column.key is not None:
        if column_type.kind is not Kind.MAP or column_type.key is None or column_type.value is None:
            raise UnsupportedOption(key, f"'{spec.column}': column '{spec.column.name}' of type {column_type.kind} is not a MAP")
        if column_type.key.kind not in STRINGS:
            raise UnsupportedOption(
                key, f"'{spec.column}': the MAP has keys of type {column_type.key.kind}; only string keys are supported"
            )
        column_type = column_type.value
    if not index_type.supports(column_type):
        raise UnsupportedOption(
            key, f"'{spec.column}': type {column_type.kind}{_precision(column_type)} is not supported by '{spec.index_type}' index"
        )
    index_type.check_options(spec.options, key_of)
    if spec.is_hidden_by(column_types):
        stored = stored_name(str(spec.column), spec.index_type)
        raise UnsupportedOption(key, f"'{spec.column}': its index would be stored under the name of the column '{stored}'; rename that")


def _precision(column_type: ColumnType) -> str:
    return f"({column_type.precision})" if column_type.kind in TIMESTAMPS or column_type.kind is Kind.DECIMAL else ""


def _boolean(text: str, option: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in {"true", "false"}:
        raise UnsupportedOption(option, f"'{text}' is neither true nor false")
    return lowered == "true"
