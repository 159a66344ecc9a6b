"""Checks whether options are supported.

They run at create, at alter, for the arguments of a call, before a write and before a read:

- ``check_settable`` refuses unknown and unsupported options.
- ``check_call`` also refuses options that a single call cannot set.
- ``check_writable`` refuses to write a table whose options a write would violate.
- ``check_readable`` and ``check_merges`` refuse to read a table whose rows would be wrong.

Unknown keys of an existing table belong to other engines and are ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from manifest.io.errors import UnsupportedTable
from manifest.options.aggregate_functions import MAP_LAYOUT, field_option_reason
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
    ROWS,
    ROWS_OF_STREAMS,
    Refusal,
)
from manifest.options.parquet_options import PARQUET_PREFIX, parquet_reason, parquet_without_effect
from manifest.options.secondary_indexes import REFUSED_PREFIXES
from manifest.options.without_effect import PREFIXES_WITHOUT_EFFECT, WITHOUT_EFFECT
from paimon_base.errors import UnsupportedOption

_OF_STORES = (
    *("aws_", "azure.", "azure_", "fs.azure.", "fs.gs.", "fs.oss.", "fs.s3.", "fs.s3a.", "gcs.", "google_", "gs.", "oss.", "s3.", "s3a."),
    *("dfs.", "fs.defaultfs", "fs.permissions.", "fs.viewfs.", "hadoop-conf-dir", "hadoop."),
    "storage.",
)
"""Prefixes of store options."""


def check_settable(options: Mapping[str, object]) -> None:
    """Raise ``UnsupportedOption`` for an unknown or unsupported option.

    >>> check_settable({"bukcet": "4"})
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'bukcet': is unknown; did you mean 'bucket'?
    """
    texts: dict[str, str] = {}
    for key, value in options.items():
        if not isinstance(value, str):
            raise UnsupportedOption(key, f"options must be text, not {value!r}")
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
        return "is an argument of the table's creation, not an option: pass primary_keys, partition_keys or the path"
    if key.startswith("fields."):
        return field_option_reason(key, value)
    if key.startswith(REFUSED_PREFIXES):
        return f"'{value}' is not supported"
    return None if key.startswith(PREFIXES) else _unknown(key)


def effect_of(key: str, value: str) -> tuple[str, str]:
    """Return the effect of a table's option, and a reason.

    The effect is ``honoured``, ``by call``, ``none`` or ``unknown``. The reason may be empty.

    >>> effect_of("bucket", "4"), effect_of("made.by", "someone"), effect_of("sink.parallelism", "8")[0]
    (('honoured', ''), ('unknown', 'is kept as it is'), 'none')
    """
    key = PRESENT_KEYS.get(key, key)
    if key in BY_CALL:
        return "by call", BY_CALL[key]
    reason = WITHOUT_EFFECT.get(key) or parquet_without_effect(key)
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
            "is unknown to tables: it is a store option, which no table stores and no plan shows. Pass it as storage_options= to "
            "Table.open, Catalog or spark_session, or set it in the environment of the process that accesses the files"
        )
    close = difflib.get_close_matches(key, [*KNOWN, *AT_CREATION], n=1)
    return f"is unknown; did you mean '{close[0]}'?" if close else "is unknown"


def _check_levels(options: CoreOptions) -> None:
    for option, by_level in (("file.format", options.file_format_per_level), ("file.compression", options.file_compression_per_level)):
        for name in by_level.values():
            if (reason := REFUSED[option](name)) is not None:
                raise UnsupportedOption(f"{option}.per.level", reason)


def check_call(options: Mapping[str, object]) -> None:
    """Raise ``UnsupportedOption`` for an option that a call cannot set.

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
    """Raise ``UnsupportedOption`` for a forbidden change of an option.

    Unchanged options are not checked, because they may belong to another engine.
    """
    before, after = with_present_keys(before), with_present_keys(after)
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    for key in changed:
        if key in IMMUTABLE:
            raise UnsupportedOption(key, "cannot change once the table exists")
        if key in ONE_WAY and before.get(key, "").strip().lower() == "true":
            raise UnsupportedOption(key, "cannot be unset: rows were already dropped")
    check_settable({key: after[key] for key in changed if key in after})
    numbers = {CoreOptions.of({"bucket": options.get("bucket", "-1")}).bucket for options in (before, after)}
    if "bucket" in changed and not numbers.isdisjoint({-1, -2}):
        raise UnsupportedOption("bucket", "cannot change to or from -1 or -2")


def check_readable(options: CoreOptions, table: str) -> None:
    """Raise ``UnsupportedTable`` if a read would return wrong rows.

    ``check_merges`` checks the options of primary-key tables.
    """
    _check_each(options, ROWS, table)
    for key, value in options.raw.items():
        if MAP_LAYOUT.fullmatch(key) and (reason := field_option_reason(key, value)) is not None:
            raise UnsupportedTable(f"{table}: option '{key}': {reason}")


def check_streamable(options: CoreOptions, table: str) -> None:
    """Raise ``UnsupportedTable`` if streams of a readable table would be wrong."""
    _check_each(options, ROWS_OF_STREAMS, table)


def _check_each(options: CoreOptions, refusals: Mapping[str, Refusal], table: str) -> None:
    for key, refusal in refusals.items():
        value = options.raw.get(key)
        if value is not None and (reason := refusal(value)) is not None:
            raise UnsupportedTable(f"{table}: option '{key}': {reason}")


def check_merges(options: CoreOptions, table: str) -> None:
    """Raise ``UnsupportedTable`` if versions of a row cannot be merged."""
    if not options.engine.is_built:
        raise UnsupportedTable(f"{table}: option 'merge-engine': '{options.engine.name}' is not supported, so its rows cannot be merged")
    for key, value in options.raw.items() if options.engine.folds_values else ():
        if key.endswith("aggregate-function") and (reason := field_option_reason(key, value)) is not None:
            raise UnsupportedTable(f"{table}: option '{key}': {reason}")


def check_writable(options: CoreOptions, table: str) -> None:
    """Raise ``UnsupportedTable`` if a write would violate an option."""
    for key, value in options.raw.items():
        refused = key in REFUSED or key.startswith(REFUSED_PREFIXES)
        if refused and (reason := _reason(key, value)) is not None:
            raise UnsupportedTable(f"{table}: option '{key}': {reason}")
    try:
        _check_levels(options)
    except UnsupportedOption as error:
        raise UnsupportedTable(f"{table}: {error}") from error


def check_rewritable(options: CoreOptions, table: str) -> None:
    """Raise ``UnsupportedTable`` if rows have ids.

    Rewriting files would lose the ids.
    """
    if options.data_evolution_enabled:
        raise UnsupportedTable(
            f"{table}: option 'data-evolution.enabled': rows keep their files and ids, and no mark of deleted rows is written beside columns "
            "in files of their own: append, overwrite, drop partitions, update, merge without deletes, and compact without an order"
        )
    if options.row_tracking_enabled:
        raise UnsupportedTable(
            f"{table}: option 'row-tracking.enabled': moving rows to other files must keep their ids, which is not supported: "
            "append, overwrite, drop partitions, and delete with 'deletion-vectors.enabled'; compact and update with another engine"
        )
