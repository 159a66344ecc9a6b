"""Options of secondary indexes: which kind a column has, and how its payload is built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fileindex.sorted_index.index_blocks import COMPRESSIONS
from paimon_base.errors import UnsupportedOption
from paimon_base.memory_size import parse_memory_size


class SortedIndexKind(StrEnum):
    """Kinds of payloads, named as in ``_INDEX_TYPE``."""

    BTREE = "btree"
    BITMAP = "bitmap"

    @property
    def columns_option(self) -> str:
        """Table option that lists the indexed columns."""
        return f"pk-{self}.index.columns"

    @property
    def prefix(self) -> str:
        """Start of the keys of build options."""
        return f"{self}-index."

    def column_option(self, column: str) -> str:
        """Table option with the build options of one column, as JSON."""
        return f"fields.{column}.pk-{self}.index.options"


_SIZES = {SortedIndexKind.BTREE: ("block-size", "64 kb"), SortedIndexKind.BITMAP: ("dictionary-block-size", "16 kb")}
_READ_OPTIONS = {
    SortedIndexKind.BTREE: {"cache-size", "high-priority-pool-ratio", "fallback-scan-max-size"},
    SortedIndexKind.BITMAP: {"fallback-scan-max-size"},
}
_LEVELS = range(1, 23)
_MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SortedIndexOptions:
    """Build options of one column's index.

    Attributes:
        kind: Kind of the payload.
        block_size: Bytes from which a data block, or a dictionary block of a bitmap, is closed.
        compression: ``none``, ``zstd`` or ``lz4``.
        level: Compression level of zstd.
    """

    kind: SortedIndexKind
    block_size: int
    compression: str = "none"
    level: int = 1

    @classmethod
    def parse(cls, kind: SortedIndexKind, column: str, table_options: Mapping[str, str]) -> SortedIndexOptions:
        """Parse the options of a column.

        Raises:
            UnsupportedOption: Naming the key of the table option.

        >>> SortedIndexOptions.parse(SortedIndexKind.BTREE, "a", {"fields.a.pk-btree.index.options": '{"compression": "LZ4"}'})
        SortedIndexOptions(kind=<SortedIndexKind.BTREE: 'btree'>, block_size=65536, compression='lz4', level=1)
        """
        texts = {key: (key, text) for key, text in table_options.items() if key.startswith(kind.prefix)}
        source = kind.column_option(column)
        for name, text in _column_options(source, table_options.get(source)).items():
            key = name if name.startswith((kind.prefix, "fields.")) else kind.prefix + name
            if key in texts and texts[key][1] != text:
                raise UnsupportedOption(source, f"'{key}' is '{text}' here and '{texts[key][1]}' in the table's options; set it once")
            texts.setdefault(key, (source, text))
        size_name, default_size = _SIZES[kind]
        size, compression, level = parse_memory_size(default_size, size_name), COMPRESSIONS[0], 1
        for key, (option, text) in texts.items():
            match key.removeprefix(kind.prefix):
                case name if name == size_name:
                    size = parse_memory_size(text, option)
                    if not 0 < size <= _MAX_INT:
                        raise UnsupportedOption(option, f"'{key}' is '{text}'; use a size from 1 byte to 2 GiB")
                case "compression":
                    compression = text.strip().lower()
                    if compression not in COMPRESSIONS:
                        raise UnsupportedOption(option, f"'{key}' is '{text}', which is not supported; use {', '.join(COMPRESSIONS)}")
                case "compression-level":
                    level = _number(text, option, key)
                    if level not in _LEVELS:
                        raise UnsupportedOption(option, f"'{key}' is '{text}'; use a level from {_LEVELS[0]} to {_LEVELS[-1]}")
                case "bloom-filter.enabled" if kind is SortedIndexKind.BTREE:
                    if text.strip().lower() != "false":
                        raise UnsupportedOption(option, f"'{key}' is '{text}': Bloom filters are not written; remove it")
                case "file-version" if kind is SortedIndexKind.BTREE:
                    if _number(text, option, key) != 1:
                        raise UnsupportedOption(option, f"'{key}' is '{text}': only version 1 is written; remove it")
                case name if name not in _READ_OPTIONS[kind]:
                    raise UnsupportedOption(option, f"'{key}' is not an option of a {kind} index")
        return cls(kind, size, compression, level)


def _column_options(option: str, text: str | None) -> dict[str, str]:
    """Return the options in the JSON object of a column."""
    if text is None:
        return {}
    try:
        values: Any = json.loads(text)
    except ValueError as error:
        raise UnsupportedOption(option, f"'{text}' is not JSON: {error}") from error
    if not isinstance(values, dict) or not all(key.strip() and isinstance(value, str | int | float) for key, value in values.items()):
        raise UnsupportedOption(option, f"'{text}' is not a JSON object of named texts")
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    texts.pop("sorted-index.records-per-range", None)  # Paimon drops it, too: a level has one payload
    return texts


def _number(text: str, option: str, key: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UnsupportedOption(option, f"'{key}' is '{text}', not a number") from None
