"""Operation, metrics and user properties of a commit.

They are properties of its snapshot. Other engines keep snapshot properties and ignore them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from manifest.snapshot.snapshot import FIRST_REPLACED, Snapshot
from paimon_base.errors import InvalidArgument

METRIC_PREFIX = "pyspark-paimon."
OPERATION = f"{METRIC_PREFIX}operation"
RESTORE, FAST_FORWARD = "restore", "fast-forward"
"""Operations of snapshots that replace the state by another one. A fast-forward has a snapshot on object stores only."""
_RESERVED = (METRIC_PREFIX, "sequence.generation.")
"""Prefixes of names that this package or Paimon's Java engine gives a meaning."""
_MAX_CHARACTERS = 16 << 10
"""Largest size of all user properties: each reader of the table reads them."""


class CommitInfo(NamedTuple):
    """What a commit did.

    ``operation``: None for commits of other engines and of older versions.
    ``metrics``: counts of rows, files and bytes. ``properties``: the user's own.
    """

    operation: str | None
    metrics: dict[str, int]
    properties: dict[str, str]

    @classmethod
    def of(cls, snapshot: Snapshot) -> CommitInfo:
        """Return what the commit of ``snapshot`` noted.

        >>> properties = commit_properties("delete", {"rows": 3}, {"ticket": "DATA-7"})
        >>> snapshot = Snapshot(id=1, schema_id=0, base_manifest_list="a", delta_manifest_list="b", commit_user="u", commit_identifier=7,
        ...     commit_kind="APPEND", time_millis=0, total_record_count=5, delta_record_count=5, properties=properties)
        >>> CommitInfo.of(snapshot)
        CommitInfo(operation='delete', metrics={'rows': 3}, properties={'ticket': 'DATA-7'})
        """
        metrics, properties = dict[str, int](), dict[str, str]()
        for name, text in (snapshot.properties or {}).items():
            if not name.startswith(_RESERVED):
                properties[name] = text
            elif name.startswith(METRIC_PREFIX) and name != FIRST_REPLACED and text.isascii() and text.isdecimal():
                metrics[name.removeprefix(METRIC_PREFIX)] = int(text)
        return cls((snapshot.properties or {}).get(OPERATION), metrics, properties)


def commit_properties(
    operation: str, metrics: Mapping[str, int] | None = None, properties: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the snapshot properties of a commit."""
    return {OPERATION: operation, **{f"{METRIC_PREFIX}{name}": str(count) for name, count in (metrics or {}).items()}, **(properties or {})}


def check_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    """Check and return the user's properties of a commit.

    Raises ``InvalidArgument`` for a value that is not text, a reserved name, or too much text.

    >>> check_properties({"pyspark-paimon.rows": "3"})
    Traceback (most recent call last):
    pyspark_paimon.InvalidArgument: properties: names with 'pyspark-paimon.' are reserved; rename 'pyspark-paimon.rows'
    """
    checked: dict[Any, Any] = dict(properties or {})
    for name, value in checked.items():
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"properties: a name must be text of at least one character, not {name!r:.60}")
        if not isinstance(value, str):
            raise InvalidArgument(f"properties: the value of '{name:.60}' must be text, not {value!r:.60}; write str(...) around it")
        for prefix in _RESERVED:
            if name.startswith(prefix):
                raise InvalidArgument(f"properties: names with '{prefix}' are reserved; rename '{name:.60}'")
    size = sum(len(name) + len(value) for name, value in checked.items())
    if size > _MAX_CHARACTERS:
        raise InvalidArgument(
            f"properties have {size:,} characters, at most {_MAX_CHARACTERS:,} are allowed: each reader of the table reads them; "
            "store a reference instead"
        )
    for text in (*checked, *checked.values()):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"properties: {text!r:.60} has an unpaired surrogate, which UTF-8 cannot encode: remove it") from error
    return checked
