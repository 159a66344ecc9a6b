"""The index types, by their names in options and containers.

Each has its column types, options, writer and reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fileindex.format.bitmap_reader import BitmapReader
from fileindex.format.bitmap_writer import DEFAULT_BLOCK_SIZE, VERSION_1, VERSION_2, write_bitmap
from fileindex.format.bloom_filter import (
    DEFAULT_FPP,
    DEFAULT_ITEMS,
    BloomFilterReader,
    BloomSize,
    FittedBloomFilterBuilder,
)
from fileindex.format.bsi import BsiReader, write_bsi
from fileindex.format.container import NGRAMS, ROW_BLOCKS, Payload
from fileindex.format.int_range import MAX_INT
from fileindex.format.ngram_filter import MOST_FPP, NGRAM_SIZES, NgramFilterReader, builder_of
from fileindex.format.range_bitmap_reader import RangeBitmapReader
from fileindex.format.range_bitmap_writer import write_range_bitmap
from fileindex.format.row_blocks import FEWEST_BLOCK_ROWS, RowBlocksReader
from fileindex.keys.group_by import GroupedColumn
from fileindex.predicate.tree import Leaf
from fileindex.rowset.result import FileIndexResult
from paimon_base.errors import UnsupportedOption
from paimon_base.memory_size import parse_memory_size
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind

BLOCK_ROWS = "block-rows"
"""Option of bloom filters that Paimon does not have."""


class HashingBuilder(Protocol):
    """Builder of an index from a set of values.

    Values come in any order, and may be repeated.
    """

    def add(self, values: Any) -> None:
        """Add an array in physical form."""

    def add_hashes(self, hashes: Any) -> None:
        """Add hashes of values (``keys.hash_array``)."""

    def add_keys(self, keys: Any) -> None:
        """Add index keys, as in a grouped column."""

    def finish(self) -> bytes:
        """Return the payload."""


class OrderedBuilder(Protocol):
    """Builder of an index from a column in row order."""

    def add(self, values: Any) -> None:
        """Add the next rows, in physical form or as a dictionary."""

    def finish(self) -> bytes:
        """Return the payload."""


class IndexReader(Protocol):
    """Reader of one index payload, which evaluates leaves."""

    @property
    def row_count(self) -> int | None:
        """Rows of the indexed file.

        None if the format does not store it.
        """

    @property
    def distinct(self) -> int | None:
        """Number of distinct values (keys) of the column, or None."""

    def evaluate(self, leaf: Leaf) -> FileIndexResult:
        """Evaluate a leaf on the index's column.

        The literals must fit the column. Raises CorruptIndex if the index is malformed.
        """


@dataclass(frozen=True, slots=True)
class IndexType:
    """An index type.

    ``hashing``, ``grouping`` or ``ordered`` builds its payload. None is set if it accompanies another type.

    ``checks`` maps each option to a function of (value, full key), which raises UnsupportedOption for an invalid value.
    ``check_together`` does so for all options of an index. It gets a function that returns their full keys.
    """

    name: str
    kinds: frozenset[Kind]
    max_precisions: Mapping[Kind, int]
    checks: Mapping[str, Callable[[str, str], object]]
    open: Callable[[Payload, ColumnType], IndexReader]
    hashing: Callable[[ColumnType, Mapping[str, str]], HashingBuilder] | None = None
    grouping: Callable[[GroupedColumn, ColumnType, Mapping[str, str]], bytes] | None = None
    ordered: Callable[[Mapping[str, str]], OrderedBuilder] | None = None
    check_together: Callable[[Mapping[str, str], Callable[[str], str]], object] | None = None

    def supports(self, column_type: ColumnType) -> bool:
        """Return whether a column type can have this index."""
        greatest = self.max_precisions.get(column_type.kind)
        return column_type.kind in self.kinds and (greatest is None or column_type.precision <= greatest)

    def check_options(self, options: Mapping[str, str], key: Callable[[str], str]) -> None:
        """Raise UnsupportedOption for an unknown option or invalid value.

        ``key`` returns the full key of an option, for the error.
        """
        for option, text in options.items():
            check = self.checks.get(option)
            if check is None:
                option_names = ", ".join(self.checks) or "none"
                raise UnsupportedOption(key(option), f"index type '{self.name}' has no option '{option}'; it has: {option_names}")
            check(text, key(option))
        if self.check_together is not None:
            self.check_together(options, key)


def _int(text: str, option: str) -> int:
    try:
        number = int(text.strip())
    except ValueError:
        raise UnsupportedOption(option, f"'{text}' is not an integer") from None
    if not 0 <= number < 2**31:
        raise UnsupportedOption(option, f"{number} is outside 0 to 2147483647")
    return number


def _fraction(text: str, option: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UnsupportedOption(option, f"'{text}' is not a number") from None
    if not 0 < number <= 1:
        raise UnsupportedOption(option, f"{text} is not a false positive rate between 0 and 1")
    return number


def _block_rows(text: str, option: str) -> int:
    number = _int(text, option)
    if 0 < number < FEWEST_BLOCK_ROWS:
        raise UnsupportedOption(option, f"{number} rows are too few for a block; write {FEWEST_BLOCK_ROWS} or more, or 0 for no blocks")
    return number


def block_rows_of(options: Mapping[str, str]) -> int:
    """Return the rows per block that accompany a bloom filter.

    ``options`` must be valid. 0: no blocks.

    >>> block_rows_of({}), block_rows_of({"block-rows": "0"})
    (10000, 0)
    """
    text = options.get(BLOCK_ROWS)
    return thresholds.index_block_rows if text is None else _block_rows(text, BLOCK_ROWS)


def _gram_size(text: str, option: str) -> int:
    number = _int(text, option)
    if number not in NGRAM_SIZES:
        raise UnsupportedOption(option, f"an n-gram has {NGRAM_SIZES[0]} to {NGRAM_SIZES[-1]} bytes, not {number}")
    return number


def _gram_fpp(text: str, option: str) -> float:
    number = _fraction(text, option)
    if number > MOST_FPP:
        raise UnsupportedOption(option, f"{text} is above {MOST_FPP}, with which blocks seem to have nearly all n-grams")
    return number


def _gram_block_rows(text: str, option: str) -> int:
    number = _int(text, option)
    if number < FEWEST_BLOCK_ROWS:
        raise UnsupportedOption(option, f"{number} rows are too few for a block; write {FEWEST_BLOCK_ROWS} or more")
    return number


def _version(text: str, option: str) -> int:
    if text.strip() not in {str(VERSION_1), str(VERSION_2)}:
        raise UnsupportedOption(option, f"bitmap version '{text}' is unknown; write 1 or 2")
    return int(text)


def _bloom_size(options: Mapping[str, str], key: Callable[[str], str] = str) -> BloomSize:
    items = _int(options.get("items", str(DEFAULT_ITEMS)), key("items"))
    fpp = _fraction(options.get("fpp", str(DEFAULT_FPP)), key("fpp"))
    try:
        return BloomSize.of(items, fpp)
    except ValueError as error:
        raise UnsupportedOption(key("items"), str(error)) from error


def _bloom(column_type: ColumnType, options: Mapping[str, str]) -> HashingBuilder:
    max_items = _int(options["items"], "items") if "items" in options else None
    return FittedBloomFilterBuilder(column_type, _fraction(options.get("fpp", str(DEFAULT_FPP)), "fpp"), max_items)


def _bitmap(column: GroupedColumn, column_type: ColumnType, options: Mapping[str, str]) -> bytes:
    version = _version(options.get("version", str(VERSION_2)), "version")
    block_size = parse_memory_size(options.get("index-block-size", str(DEFAULT_BLOCK_SIZE)), "index-block-size")
    return write_bitmap(column, column_type, version=version, block_size=min(block_size, MAX_INT))


def _range_bitmap(column: GroupedColumn, column_type: ColumnType, options: Mapping[str, str]) -> bytes:
    text = options.get("chunk-size")
    return write_range_bitmap(column, column_type, chunk_size=None if text is None else parse_memory_size(text, "chunk-size"))


_NUMBERS = INTEGERS | FLOATS | TIMESTAMPS | {Kind.DATE, Kind.TIME}

INDEX_TYPES: Mapping[str, IndexType] = {
    index_type.name: index_type
    for index_type in (
        IndexType(
            "bloom-filter",
            frozenset(_NUMBERS | STRINGS | BINARIES),
            {},
            {"items": _int, "fpp": _fraction, BLOCK_ROWS: _block_rows},
            BloomFilterReader,
            hashing=_bloom,
            check_together=_bloom_size,
        ),
        IndexType(
            "bitmap",
            frozenset(_NUMBERS | STRINGS | {Kind.BOOLEAN}),
            {},
            {"version": _version, "index-block-size": parse_memory_size},
            BitmapReader,
            grouping=_bitmap,
        ),
        IndexType(
            "bsi",
            frozenset(INTEGERS | TIMESTAMPS | {Kind.DATE, Kind.TIME, Kind.DECIMAL}),
            {},
            {},
            BsiReader,
            grouping=lambda column, _type, _options: write_bsi(column),
        ),
        IndexType(
            "range-bitmap",
            frozenset(_NUMBERS | STRINGS | {Kind.BOOLEAN, Kind.DECIMAL}),
            {Kind.DECIMAL: 18, **dict.fromkeys(TIMESTAMPS, 6)},
            {"chunk-size": parse_memory_size},
            RangeBitmapReader,
            grouping=_range_bitmap,
        ),
        IndexType(
            NGRAMS,
            frozenset(STRINGS),
            {},
            {"size": _gram_size, "fpp": _gram_fpp, BLOCK_ROWS: _gram_block_rows},
            NgramFilterReader,
            ordered=builder_of,
        ),
    )
}
"""Index types by name that options can declare."""

STORED_TYPES: Mapping[str, IndexType] = {
    **INDEX_TYPES,
    ROW_BLOCKS: IndexType(ROW_BLOCKS, INDEX_TYPES["bloom-filter"].kinds, {}, {}, RowBlocksReader),
}
"""Index types by name that containers can contain."""
