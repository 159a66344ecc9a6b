"""Table options from a session: ``SET spark.paimon.<option>``.

``spark.paimon.<catalog>.<database>.<table>.<option>`` sets an option of one table. ``Table`` and ``sql`` read the settings from the
session. A plain ``spark.read`` or ``df.write`` cannot: Spark hides settings from a data source while it plans. Tasks do see them,
and refuse a setting that the read or write lacks as an option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from manifest.io.paths import split_branch
from manifest.options.support import check_call, effect_of
from paimon_base.errors import UnsupportedOption
from pyspark_paimon.request.scan_mode import is_place
from pyspark_paimon.spark.wire.errors import raise_typed_errors

SETTINGS_PREFIX = "spark.paimon."
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_CATALOGS = frozenset({"*", "paimon", "pyspark_paimon", "spark_catalog"})
_PLACES = 3


def paimon_settings(conf: Mapping[str, str], path: str) -> dict[str, str]:
    """Return a session's options for the table at ``path``.

    A setting of the table overrides one of all tables. Raises ``UnsupportedOption``.

    >>> conf = {"spark.paimon.file.block-size": "1 mb", "spark.paimon.*.db.t.bucket": "2", "spark.paimon.*.db.other.bucket": "3"}
    >>> paimon_settings(conf, "/wh/db.db/t")
    {'file.block-size': '1 mb', 'bucket': '2'}
    """
    settings = list(_settings(conf, path))
    return {option: value for table_first in (False, True) for option, value, of_table in settings if of_table is table_first}


def _settings(conf: Mapping[str, str], path: str) -> Iterator[tuple[str, str, bool]]:
    table_path = PurePosixPath(split_branch(path.partition("$")[0])[0])
    names = ({table_path.parent.name.removesuffix(".db"), "*"}, {table_path.name, "*"})
    for key, value in sorted(conf.items()):
        if not key.startswith(SETTINGS_PREFIX):
            continue
        table, option = _parse_key(key)
        if table is None:
            yield _check_known(key, option), value, False
        elif table[0] in _CATALOGS and table[1] in names[0] and table[2] in names[1]:
            yield _check_known(key, option), value, True


def _parse_key(key: str) -> tuple[list[str] | None, str]:
    """Split a setting's key into (catalog, database, table) and option.

    None: all tables.
    """
    option = key.removeprefix(SETTINGS_PREFIX)
    parts = option.split(".", _PLACES)
    return (None, option) if len(parts) <= _PLACES or _is_known(option) else (parts[:_PLACES], parts[-1])


def _is_known(option: str) -> bool:
    return effect_of(option, "")[0] != "unknown"


def _check_known(key: str, option: str) -> str:
    if not _is_known(option):
        raise UnsupportedOption(key, "is unknown: RESET it")
    return option


def settings_of(spark: Any, path: str) -> dict[str, str]:
    """Return the options in the settings of ``spark`` for the table at ``path``. Raises ``UnsupportedOption``."""
    return paimon_settings(_conf_of(spark), path)


def _conf_of(spark: Any) -> Mapping[str, str]:
    with raise_typed_errors():
        settings: Mapping[str, str] = getattr(getattr(spark, "conf", None), "getAll", {})
    return settings


def has_settings(spark: Any) -> bool:
    """Return whether the session has settings for Paimon tables."""
    return any(key.startswith(SETTINGS_PREFIX) for key in _conf_of(spark))


def check_setting(key: str, value: str) -> None:
    """Raise ``UnsupportedOption`` if no Paimon table accepts ``SET key = value``."""
    if not key.startswith(SETTINGS_PREFIX):
        return
    table, option = _parse_key(key)
    if (table is None or table[0] in _CATALOGS) and not is_place(_check_known(key, option)):
        check_settings({option: value})


def check_settings(options: Mapping[str, str]) -> None:
    """Raise ``UnsupportedOption`` for options that one call may not change."""
    for option, value in options.items():
        try:
            check_call({option: value})
        except UnsupportedOption as error:
            raise UnsupportedOption(f"{SETTINGS_PREFIX}{option}", error.reason) from None


def task_settings() -> dict[str, str]:
    """Return the settings of the running task's session. Empty outside a task."""
    from pyspark import TaskContext  # noqa: PLC0415  # a client needs no worker's module

    context = TaskContext.get()
    return dict(getattr(context, "_localProperties", None) or {})


def overwrites_partitions() -> bool:
    """Return whether the task's session has dynamic partition overwrite."""
    return task_settings().get(OVERWRITE_MODE, "static").lower() == "dynamic"


def refuse_task_settings(path: str, conf: Mapping[str, str]) -> None:
    """Raise ``UnsupportedOption`` if ``conf`` lacks a session's setting for the table."""
    lowered = {key.lower(): value for key, value in conf.items()}
    for option, value in paimon_settings(task_settings(), path).items():
        if lowered.get(option.lower()) != value:
            reason = f"a plain read or write does not see it: give it as .option('{option}', '{value}'), use Table or pyspark_paimon.sql, or RESET it"
            raise UnsupportedOption(f"{SETTINGS_PREFIX}{option}", reason)
