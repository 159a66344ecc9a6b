"""Table options that name columns: rewritten when a column is renamed, in the way when it is dropped.

Paimon's ``SchemaManager`` rewrites ``bucket-key``, ``sequence.field`` and ``fields.*``, and refuses to rename a column that another
option names. Here every option that is known to name columns follows the rename, those of file indexes too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fileindex.build.options import COLUMNS_OPTION, OPTION_PREFIX
from manifest.options.former_keys import FORMER_KEYS
from manifest.options.merge_keys import MAP_LAYOUT

_LISTS = frozenset(
    [
        "bucket-key",
        "sequence.field",
        "rowkind.field",
        "record-level.time-field",
        "clustering.columns",
        *FORMER_KEYS["clustering.columns"],
        "partial-update.remove-record-on-sequence-group",
        "changelog-producer.row-deduplicate-ignore-fields",
    ]
)
_FIELDS = "fields."
_SEQUENCE_GROUP = "sequence-group"
Rename = Callable[[str], str]


def rename_in_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """``options`` with column ``new`` wherever they name ``old``, in keys and in values.

    >>> rename_in_options({"sequence.field": "at,n", "fields.at,n.sequence-group": "a,b", "file-index.bitmap.columns": "n,m[k]"}, "n", "x")
    {'sequence.field': 'at,x', 'fields.at,x.sequence-group': 'a,b', 'file-index.bitmap.columns': 'x,m[k]'}
    """

    def rename(name: str) -> str:
        return name.replace(old, new, 1) if name.strip() == old else name

    return {_key(key, rename): _value(key, text, rename) for key, text in options.items()}


def options_naming(options: Mapping[str, str], column: str) -> list[str]:
    """Keys of the options that name ``column``.

    >>> options_naming({"bucket": "4", "bucket-key": "id,n", "fields.n.stats-mode": "full"}, "n")
    ['bucket-key', 'fields.n.stats-mode']
    """
    renamed = rename_in_options(options, column, f"\0{column}")
    return [key for key, text in options.items() if renamed.get(key) != text]


def hashed_columns(options: Mapping[str, str], primary_keys: Iterable[str]) -> frozenset[str]:
    """Columns whose bytes decide about a row's bucket."""
    text = options.get("bucket-key")
    return frozenset(primary_keys if text is None else text.split(","))


def _key(key: str, rename: Rename) -> str:
    layout = MAP_LAYOUT.fullmatch(key)
    if layout is not None:
        return f"{_FIELDS}{rename(layout['column'])}{key[layout.end('column') :]}"
    if key.startswith(_FIELDS):
        middle, dot, option = key.removeprefix(_FIELDS).rpartition(".")
        return f"{_FIELDS}{_list(middle, rename)}.{option}" if dot else key
    if key.startswith(OPTION_PREFIX) and not key.endswith(COLUMNS_OPTION):
        parts = key.split(".")
        if len(parts) == 4:
            return ".".join([*parts[:2], _map_column(parts[2], rename), parts[3]])
    return key


def _value(key: str, text: str, rename: Rename) -> str:
    if key in _LISTS or (key.startswith(_FIELDS) and key.endswith(f".{_SEQUENCE_GROUP}")):
        return _list(text, rename)
    if key.startswith(OPTION_PREFIX) and key.endswith(COLUMNS_OPTION):
        return ",".join(_map_column(part, rename) for part in text.split(","))
    return text


def _list(text: str, rename: Rename) -> str:
    return ",".join(rename(part) for part in text.split(","))


def _map_column(text: str, rename: Rename) -> str:
    """``m`` or ``m[key]``: only the column is renamed."""
    name, bracket, rest = text.partition("[")
    return f"{rename(name)}{bracket}{rest}"


__all__ = ["hashed_columns", "options_naming", "rename_in_options"]
