"""Whether options can be honoured: asked at create, at alter, in the arguments of a call, before a write and before a read.

By strictness: ``check_settable`` refuses what is unknown or not built, ``check_call`` also what one call cannot decide;
``check_writable`` refuses to write a table whose promises we would break; ``check_readable`` refuses to read one whose rows
we would get wrong. Unknown keys of a table that exists are somebody else's and are left alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from fileindex.base.errors import UnsupportedOption
from manifest.io.errors import UnsupportedTable
from manifest.options.core_options import CoreOptions
from manifest.options.former_keys import PRESENT_KEYS, with_present_keys
from manifest.options.known_keys import (
    AT_CREATION,
    BY_CALL,
    IMMUTABLE,
    KNOWN,
    LAYOUT,
    ONE_WAY,
    PREFIXES,
    REFUSED,
    REFUSED_PREFIXES,
    ROWS,
    ROWS_OF_STREAMS,
    Refusal,
)
from manifest.options.merge_keys import MAP_LAYOUT, field_option_reason
from manifest.options.parquet_options import PARQUET_PREFIX, PARQUET_WITHOUT_EFFECT, parquet_reason
from manifest.options.without_effect import PREFIXES_WITHOUT_EFFECT, WITHOUT_EFFECT

_OF_STORES = (
    *("aws_", "azure.", "azure_", "fs.azure.", "fs.gs.", "fs.oss.", "fs.s3.", "fs.s3a.", "gcs.", "google_", "gs.", "oss.", "s3.", "s3a."),
    "storage.",
)
"""How the options of stores begin."""


def check_settable(options: Mapping[str, object]) -> None:
    """Raise ``UnsupportedOption`` for a key that is unknown, or a key or value that is not built.

    >>> check_settable({"bukcet": "4"})
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'bukcet': is unknown; did you mean 'bucket'?
    """
    texts: dict[str, str] = {}
    for key, value in options.items():
        if not isinstance(value, str):
            raise UnsupportedOption(key, f"options are text, but this is {value!r}")
        texts[key] = value
        present = PRESENT_KEYS.get(key, key)
        reason = None if present != key and present in options else _reason(key, value)
        if reason is not None:
            raise UnsupportedOption(key, reason)
    _check_levels(CoreOptions.of(texts))


def _reason(key: str, value: str) -> str | None:
    if key in PRESENT_KEYS:
        return _reason(PRESENT_KEYS[key], value)
    if key in REFUSED:
        return REFUSED[key](value)
    if key.startswith(PARQUET_PREFIX):
        return parquet_reason(key, value)
    if key in KNOWN:
        return None
    if key in AT_CREATION:
        return "is an argument of the table's creation, not an option: give primary_keys, partition_keys or the path"
    if key.startswith("fields."):
        return field_option_reason(key, value)
    if key.startswith(REFUSED_PREFIXES):
        return f"'{value}' is not built"
    return None if key.startswith(PREFIXES) else _unknown(key)


def effect_of(key: str, value: str) -> tuple[str, str]:
    """What an option of a table does here: ``honoured``, ``by call``, ``none`` or ``unknown``, and why, where that needs a word.

    >>> effect_of("bucket", "4"), effect_of("made.by", "someone"), effect_of("sink.parallelism", "8")[0]
    (('honoured', ''), ('unknown', 'is kept as it is'), 'none')
    """
    key = PRESENT_KEYS.get(key, key)
    if key in BY_CALL:
        return "by call", BY_CALL[key]
    reason = WITHOUT_EFFECT.get(key) or PARQUET_WITHOUT_EFFECT.get(key.partition("#")[0])
    reason = reason or next((reason for prefix, reason in PREFIXES_WITHOUT_EFFECT.items() if key.startswith(prefix)), None)
    if reason is not None:
        return "none", reason
    refused = _reason(key, value)
    if refused is not None:
        return ("unknown", "is kept as it is") if refused.startswith("is unknown") else ("none", refused)
    return "honoured", ""


def _unknown(key: str) -> str:
    if key.lower().startswith(_OF_STORES):
        return (
            "is unknown to tables: it is an option of stores, which no table keeps and no plan shows. Give it as storage_options= to "
            "Table.open, Catalog or spark_session, or to the environment of the process that touches the files"
        )
    close = difflib.get_close_matches(key, [*KNOWN, *AT_CREATION], n=1)
    return f"is unknown; did you mean '{close[0]}'?" if close else "is unknown"


def _check_levels(options: CoreOptions) -> None:
    for option, by_level in (("file.format", options.file_format_per_level), ("file.compression", options.file_compression_per_level)):
        for name in by_level.values():
            if (reason := REFUSED[option](name)) is not None:
                raise UnsupportedOption(f"{option}.per.level", reason)


def check_call(options: Mapping[str, object]) -> None:
    """Raise ``UnsupportedOption`` for an option that one write, compaction or scan cannot have for itself.

    >>> check_call({"target-file-size": "16 mb"})
    >>> check_call({"bucket": "8"})
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'bucket': holds for the whole table and cannot be given to one call
    """
    for key in options:
        if PRESENT_KEYS.get(key, key) in LAYOUT:
            raise UnsupportedOption(key, "holds for the whole table and cannot be given to one call")
    check_settable(options)


def check_alter(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raise ``UnsupportedOption`` if an option changes that must stay, or to what is unknown or not built.

    Options that do not change are not looked at: they may be another engine's.
    """
    before, after = with_present_keys(before), with_present_keys(after)
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    for key in changed:
        if key in IMMUTABLE:
            raise UnsupportedOption(key, "cannot change once the table exists")
        if key in ONE_WAY and before.get(key, "").strip().lower() == "true":
            raise UnsupportedOption(key, "cannot be taken back: rows were dropped already")
    check_settable({key: after[key] for key in changed if key in after})
    numbers = {CoreOptions.of({"bucket": options.get("bucket", "-1")}).bucket for options in (before, after)}
    if "bucket" in changed and not numbers.isdisjoint({-1, -2}):
        raise UnsupportedOption("bucket", "cannot change to or from -1 or -2")


def check_readable(options: CoreOptions, *, has_primary_key: bool, table: str) -> None:
    """Raise ``UnsupportedTable`` if reading would give other rows than Paimon's."""
    if has_primary_key:
        _check_merges(options, table)
    _check_each(options, ROWS, table)
    for key, value in options.raw.items():
        if MAP_LAYOUT.fullmatch(key) and (reason := field_option_reason(key, value)) is not None:
            raise UnsupportedTable(f"{table}: option '{key}': {reason}")


def check_streamable(options: CoreOptions, *, has_primary_key: bool, table: str) -> None:
    """Raise ``UnsupportedTable`` if a stream would give other rows than Paimon's."""
    check_readable(options, has_primary_key=has_primary_key, table=table)
    _check_each(options, ROWS_OF_STREAMS, table)


def _check_each(options: CoreOptions, refusals: Mapping[str, Refusal], table: str) -> None:
    for key, refusal in refusals.items():
        value = options.raw.get(key)
        if value is not None and (reason := refusal(value)) is not None:
            raise UnsupportedTable(f"{table}: option '{key}': {reason}")


def _check_merges(options: CoreOptions, table: str) -> None:
    if not options.engine.is_built:
        raise UnsupportedTable(f"{table}: option 'merge-engine': '{options.engine.name}' is not built, so its rows cannot be merged")
    for key, value in options.raw.items() if options.engine.folds_values else ():
        if key.endswith("aggregate-function") and (reason := field_option_reason(key, value)) is not None:
            raise UnsupportedTable(f"{table}: option '{key}': {reason}")


def check_writable(options: CoreOptions, *, has_primary_key: bool, table: str) -> None:
    """Raise ``UnsupportedTable`` if what we would write breaks a promise that the table's options make."""
    check_readable(options, has_primary_key=has_primary_key, table=table)
    for key, value in options.raw.items():
        refused = key in REFUSED or key.startswith(REFUSED_PREFIXES)
        if refused and (reason := _reason(key, value)) is not None:
            raise UnsupportedTable(f"{table}: option '{key}': {reason}")
    try:
        _check_levels(options)
    except UnsupportedOption as error:
        raise UnsupportedTable(f"{table}: {error}") from error


def check_rewritable(options: CoreOptions, table: str) -> None:
    """Raise ``UnsupportedTable`` where rows have ids, which they would lose in other files."""
    if options.row_tracking_enabled:
        raise UnsupportedTable(
            f"{table}: option 'row-tracking.enabled': rows keep their ids when they are moved to other files, which is not built: "
            "append, overwrite, drop partitions, and delete with 'deletion-vectors.enabled'; compact and update with another engine"
        )


__all__ = ["check_alter", "check_call", "check_readable", "check_rewritable", "check_settable", "check_streamable", "check_writable"]
