"""``SET spark.paimon.<option>``: options for all tables of a session, or for ``spark.paimon.<catalog>.<database>.<table>.<option>``.

``Table`` and ``sql`` ask the session. Spark shows a data source no setting while it plans, but every task has them: there, what a
plain read or write did not get as its own option is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from fileindex.base.errors import UnsupportedOption
from manifest.io.paths import split_branch
from manifest.options.support import check_call, effect_of
from pyspark_paimon.request.scan_mode import is_place

SETTINGS_PREFIX = "spark.paimon."
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_CATALOGS = frozenset({"*", "paimon", "pyspark_paimon", "spark_catalog"})
_PLACES = 3


def paimon_settings(conf: Mapping[str, str], path: str) -> dict[str, str]:
    """The options of a session's settings for the table at ``path``; those of the table win. Raises ``UnsupportedOption``.

    >>> conf = {"spark.paimon.file.block-size": "1 mb", "spark.paimon.*.db.t.bucket": "2", "spark.paimon.*.db.other.bucket": "3"}
    >>> paimon_settings(conf, "/wh/db.db/t")
    {'file.block-size': '1 mb', 'bucket': '2'}
    """
    found = list(_settings(conf, path))
    return {option: value for own in (False, True) for option, value, of_table in found if of_table is own}


def _settings(conf: Mapping[str, str], path: str) -> Iterator[tuple[str, str, bool]]:
    place = PurePosixPath(split_branch(path.partition("$")[0])[0])
    names = ({place.parent.name.removesuffix(".db"), "*"}, {place.name, "*"})
    for key, value in sorted(conf.items()):
        if not key.startswith(SETTINGS_PREFIX):
            continue
        table, option = _parsed(key)
        if table is None:
            yield _known(key, option), value, False
        elif table[0] in _CATALOGS and table[1] in names[0] and table[2] in names[1]:
            yield _known(key, option), value, True


def _parsed(key: str) -> tuple[list[str] | None, str]:
    """Split a setting's key into catalog, database and table, or None for all tables, and the option."""
    option = key.removeprefix(SETTINGS_PREFIX)
    parts = option.split(".", _PLACES)
    return (None, option) if len(parts) <= _PLACES or _is_known(option) else (parts[:_PLACES], parts[-1])


def _is_known(option: str) -> bool:
    return effect_of(option, "")[0] != "unknown"


def _known(key: str, option: str) -> str:
    if not _is_known(option):
        raise UnsupportedOption(key, "is unknown: RESET it")
    return option


def settings_of(spark: Any, path: str) -> dict[str, str]:
    """The options that a session's settings give the table at ``path``. Raises ``UnsupportedOption``."""
    return paimon_settings(_conf_of(spark), path)


def _conf_of(spark: Any) -> Mapping[str, str]:
    found: Mapping[str, str] = getattr(getattr(spark, "conf", None), "getAll", {})
    return found


def has_settings(spark: Any) -> bool:
    """Whether the session has settings for Paimon's tables."""
    return any(key.startswith(SETTINGS_PREFIX) for key in _conf_of(spark))


def check_setting(key: str, value: str) -> None:
    """Raise ``UnsupportedOption`` where ``SET key = value`` is for Paimon's tables, and no read or write of them could have it."""
    if not key.startswith(SETTINGS_PREFIX):
        return
    table, option = _parsed(key)
    if (table is None or table[0] in _CATALOGS) and not is_place(_known(key, option)):
        check_settings({option: value})


def check_settings(options: Mapping[str, str]) -> None:
    """Raise ``UnsupportedOption`` by the setting's name for what one call cannot have."""
    for option, value in options.items():
        try:
            check_call({option: value})
        except UnsupportedOption as error:
            raise UnsupportedOption(f"{SETTINGS_PREFIX}{option}", error.reason) from None


def task_settings() -> dict[str, str]:
    """The settings of the session whose task this process runs; none outside of tasks."""
    from pyspark import TaskContext  # noqa: PLC0415  # a client needs no worker's module

    context = TaskContext.get()
    return dict(getattr(context, "_localProperties", None) or {})


def overwrites_partitions() -> bool:
    """Whether overwrites of the session whose task this is replace the partitions of their rows alone."""
    return task_settings().get(OVERWRITE_MODE, "static").lower() == "dynamic"


def refuse_task_settings(path: str, given: Mapping[str, str]) -> None:
    """Raise ``UnsupportedOption`` where a session's setting is for this table, and the plain read or write did not have it as an option."""
    lowered = {key.lower(): value for key, value in given.items()}
    for option, value in paimon_settings(task_settings(), path).items():
        if lowered.get(option.lower()) != value:
            told = f"a plain read or write does not see it: give it as .option('{option}', '{value}'), use Table or pyspark_paimon.sql, or RESET it"
            raise UnsupportedOption(f"{SETTINGS_PREFIX}{option}", told)


__all__ = [
    "OVERWRITE_MODE",
    "SETTINGS_PREFIX",
    "check_setting",
    "check_settings",
    "has_settings",
    "overwrites_partitions",
    "paimon_settings",
    "refuse_task_settings",
    "settings_of",
]
