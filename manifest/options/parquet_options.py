"""Options of Parquet's writer (``parquet.*``) and statistics modes.

A column name may follow after a ``#``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paimon_base.errors import UnsupportedOption
from paimon_base.memory_size import parse_memory_size
from sparkexpr.values.column_type import Plain

PARQUET_PREFIX = "parquet."
_BLOOM, _FPP, _NDV = "parquet.bloom.filter.enabled", "parquet.bloom.filter.fpp", "parquet.bloom.filter.expected.ndv"
_PAGE_SIZE, _PAGE_ROWS, _BLOCK = "parquet.page.size", "parquet.page.row.count.limit", "parquet.block.size"
_DICTIONARY, _VERSION, _CHECKSUM = "parquet.enable.dictionary", "parquet.writer.version", "parquet.page.write-checksum.enabled"
_COMPRESSION = "parquet.compression"
CODECS = ("zstd", "none", "snappy", "lz4", "gzip")
"""Codecs of data files in Parquet."""
_VERSIONS = {"v1", "1", "1.0", "parquet_1_0"}
OF_COLUMNS = frozenset({_BLOOM, _FPP, _NDV, _DICTIONARY, _COMPRESSION})
"""Options that ``#<column>`` gives to one column."""
_FALSE_POSITIVES = 0.01
PARQUET_HONOURED = frozenset({_BLOOM, _FPP, _NDV, _PAGE_SIZE, _PAGE_ROWS, _BLOCK, _DICTIONARY, _VERSION, _CHECKSUM})
_PARSED = PARQUET_HONOURED | {_COMPRESSION}
PARQUET_WITHOUT_EFFECT: dict[str, str] = {
    _COMPRESSION: "use file.compression, or parquet.compression#<column> for one column",
    "parquet.compression.codec.zstd.level": "use file.compression.zstd-level",
    **dict.fromkeys(
        [
            "parquet.bloom.filter.adaptive.enabled",
            "parquet.bloom.filter.candidates.number",
            "parquet.bloom.filter.max.bytes",
            "parquet.block.row.count.limit",
            "parquet.columnindex.truncate.length",
            "parquet.dictionary.page.size",
            "parquet.memory.min.chunk.size",
            "parquet.memory.pool.ratio",
            "parquet.page.size.check.estimate",
            "parquet.page.size.row.check.max",
            "parquet.page.size.row.check.min",
            "parquet.page.value.count.threshold",
            "parquet.size.statistics.enabled",
            "parquet.statistics.enabled",
            "parquet.statistics.truncate.length",
            "parquet.validation",
            "parquet.writer.max-padding",
        ],
        "the encoder has no such setting",
    ),
    **dict.fromkeys(
        [
            "parquet.filter.bloom.enabled",
            "parquet.filter.columnindex.enabled",
            "parquet.filter.dictionary.enabled",
            "parquet.filter.record-level.enabled",
            "parquet.filter.stats.enabled",
            "parquet.page.verify-checksum.enabled",
        ],
        "readers use what a file has, and verify it",
    ),
}
_TRUNCATE = re.compile(r"truncate\((\d{1,9})\)", re.IGNORECASE)
_BEFORE_SURROGATES, _AFTER_SURROGATES, _LAST_CODE_POINT = 0xD7FF, 0xE000, 0x10FFFF


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """Encoder options. None: the encoder's default.

    ``bloom``, ``false_positives`` and ``distinct`` are by column, with ``*`` for all. ``codecs``: codec of single columns.

    >>> options = ParquetOptions.of({"parquet.page.size": "64 kb", "parquet.bloom.filter.enabled#id": "true", "bucket": "1"})
    >>> options.page_bytes, options.bloom_filters(["id", "v"], 500)
    (65536, {'id': {'fpp': 0.01, 'ndv': 500}})
    """

    page_bytes: int | None = None
    page_rows: int | None = None
    block_bytes: int | None = None
    dictionary: Mapping[str, bool] = field(default_factory=dict)
    bloom: Mapping[str, bool] = field(default_factory=dict)
    false_positives: Mapping[str, float] = field(default_factory=dict)
    distinct: Mapping[str, int] = field(default_factory=dict)
    codecs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, raw: Mapping[str, str]) -> ParquetOptions:
        """Parse a table's Parquet options.

        Raises ``UnsupportedOption`` with the invalid one.
        """
        text_by_key = {
            key: value.strip() for key, value in raw.items() if key.startswith(PARQUET_PREFIX) and key.partition("#")[0] in _PARSED
        }
        for key, value in text_by_key.items():
            if key == _VERSION and value.lower() not in _VERSIONS:
                raise UnsupportedOption(key, f"'{value}' is not supported: pages have version 1, which every engine reads")
            if key == _CHECKSUM and not _flag(key, value):
                raise UnsupportedOption(key, "pages always have checksums: readers verify them")
        return cls(
            page_bytes=_positive(_PAGE_SIZE, parse_memory_size(text_by_key[_PAGE_SIZE], _PAGE_SIZE)) if _PAGE_SIZE in text_by_key else None,
            page_rows=_number(_PAGE_ROWS, text_by_key[_PAGE_ROWS]) if _PAGE_ROWS in text_by_key else None,
            block_bytes=_positive(_BLOCK, parse_memory_size(text_by_key[_BLOCK], _BLOCK)) if _BLOCK in text_by_key else None,
            dictionary={column: _flag(key, value) for key, column, value in _of_columns(text_by_key, _DICTIONARY)},
            bloom={column: _flag(key, value) for key, column, value in _of_columns(text_by_key, _BLOOM)},
            false_positives={column: _share(key, value) for key, column, value in _of_columns(text_by_key, _FPP)},
            distinct={column: _number(key, value) for key, column, value in _of_columns(text_by_key, _NDV)},
            codecs={column: _codec(key, value) for key, column, value in _of_columns(text_by_key, _COMPRESSION) if key != _COMPRESSION},
        )

    def bloom_filters(self, columns: Collection[str], rows: int) -> dict[str, dict[str, Any]]:
        """Return the bloom filters of ``columns`` in Arrow's form.

        ``rows`` is the default number of distinct values.
        """
        filtered_columns = [name for name in columns if self.bloom.get(name, self.bloom.get("*", False))]
        return {
            name: {
                "fpp": self.false_positives.get(name, self.false_positives.get("*", _FALSE_POSITIVES)),
                "ndv": self.distinct.get(name, self.distinct.get("*", max(1, rows))),
            }
            for name in filtered_columns
        }

    def without_dictionary(self, columns: Iterable[str]) -> frozenset[str]:
        """Return the columns that must not have a dictionary."""
        if not self.dictionary:
            return frozenset()
        default = self.dictionary.get("*", True)
        return frozenset([column for column in columns if not self.dictionary.get(column, default)])


def parquet_without_effect(key: str) -> str | None:
    """Return why a ``parquet.*`` option has no effect, None if it has one.

    >>> parquet_without_effect("parquet.compression"), parquet_without_effect("parquet.compression#note")
    ('use file.compression, or parquet.compression#<column> for one column', None)
    """
    name, mark, _ = key.partition("#")
    return None if mark and name in OF_COLUMNS else PARQUET_WITHOUT_EFFECT.get(name)


def parquet_reason(key: str, value: str) -> str | None:
    """Return why a ``parquet.*`` option is invalid, None if valid.

    Does not check columns.

    >>> parquet_reason("parquet.page.size", "1 mb"), parquet_reason("parquet.pagesize", "1 mb")
    (None, 'is unknown, or not supported')
    """
    name, mark, _ = key.partition("#")
    if parquet_without_effect(key) is not None:
        return None
    if name not in _PARSED or (mark and name not in OF_COLUMNS):
        return "is unknown, or not supported"
    try:
        ParquetOptions.of({key: value})
    except UnsupportedOption as error:
        return error.reason
    return None


def _of_columns(text_by_key: Mapping[str, str], name: str) -> list[tuple[str, str, str]]:
    """Return (key, column or ``*``, value) of a per-column option."""
    return [(key, key.partition("#")[2] or "*", value) for key, value in text_by_key.items() if key.partition("#")[0] == name]


def _flag(key: str, value: str) -> bool:
    if value.lower() not in {"true", "false"}:
        raise UnsupportedOption(key, f"'{value}' is neither true nor false")
    return value.lower() == "true"


def _codec(key: str, value: str) -> str:
    if value.lower() not in CODECS:
        raise UnsupportedOption(key, f"'{value}' is not a codec; use one of {', '.join(CODECS)}")
    return value.lower()


def _number(key: str, value: str) -> int:
    if not value.isdecimal() or len(value) > 18:
        raise UnsupportedOption(key, f"'{value}' must be a number of 1 or more")
    return _positive(key, int(value))


def _positive(key: str, value: int) -> int:
    if value < 1:
        raise UnsupportedOption(key, f"'{value}' must be a number of 1 or more")
    return value


def _share(key: str, value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UnsupportedOption(key, f"'{value}' must be between 0 and 1")
    return share


class Keep(StrEnum):
    """Stored statistics of a column."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATE = "truncate"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class StatsMode:
    """A parsed mode.

    ``length`` (characters or bytes) applies to ``truncate`` only.

    >>> StatsMode.parse("truncate(16)", "metadata.stats-mode").bound("aaaaaaaaaaaaaaaaX", "z")
    ('aaaaaaaaaaaaaaaa', 'z')
    """

    keep: Keep
    length: int = 0

    @classmethod
    def parse(cls, text: str, option: str) -> StatsMode:
        """Parse an option's value.

        Raises ``UnsupportedOption`` for ``option``.
        """
        if match := _TRUNCATE.fullmatch(text.strip()):
            if int(match[1]) == 0:
                raise UnsupportedOption(option, "truncate() must keep at least one character")
            return cls(Keep.TRUNCATE, int(match[1]))
        try:
            keep = Keep(text.strip().lower())
        except ValueError:
            keep = Keep.TRUNCATE
        if keep is Keep.TRUNCATE:
            raise UnsupportedOption(option, f"'{text}' is not a mode; use none, counts, truncate(length) or full")
        return cls(keep)

    def bound(self, low: Plain, high: Plain) -> tuple[Plain, Plain]:
        """Return the stored minimum and maximum.

        Returns (None, None) if no truncated value is greater than or equal to ``high``.
        """
        if self.keep in {Keep.NONE, Keep.COUNTS} or low is None or high is None:
            return None, None
        if self.keep is Keep.FULL or not isinstance(high, str | bytes):
            return low, high
        upper = truncate_up(high, self.length)
        return (None, None) if upper is None else (truncate_down(low, self.length), upper)


SYSTEM_MODE = StatsMode(Keep.TRUNCATE, 128)
"""Mode of the key columns."""


def truncate_down(value: Plain, length: int) -> Plain:
    """Return the prefix of a string or binary value.

    It is a lower bound. Other values are returned as they are.
    """
    return value[:length] if isinstance(value, str | bytes) else value


def truncate_up(value: Plain, length: int) -> Plain:
    r"""Return an upper bound of at most ``length`` units.

    Units are characters or bytes. None if there is no such bound.

    >>> truncate_up("aaaaaaaaaaaaaaaaX", 16), truncate_up(bytes.fromhex("ffffff01ff"), 4).hex(), truncate_up("\U0010ffff\U0010ffff", 1)
    ('aaaaaaaaaaaaaaab', 'ffffff02', None)
    """
    if not isinstance(value, str | bytes) or len(value) <= length:
        return value
    if isinstance(value, bytes):
        # Increment the last byte or character that has a successor, and drop the rest. Surrogates are not characters.
        prefix = value[:length].rstrip(b"\xff")
        return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None
    text = value[:length].rstrip(chr(_LAST_CODE_POINT))
    if not text:
        return None
    last = ord(text[-1])
    return text[:-1] + chr(_AFTER_SURROGATES if last == _BEFORE_SURROGATES else last + 1)
