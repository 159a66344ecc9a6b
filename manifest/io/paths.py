"""All paths of a table (Paimon's ``FileStorePathFactory``).

Includes the path methods of Paimon's managers. No other module builds paths.

Partition directories follow Paimon's ``PartitionPathUtils`` and ``InternalRowPartitionComputer``. The name of a system table is
``<table>$files``, or ``<table>$branch_b$files`` for a branch.
"""

from __future__ import annotations

import itertools
import math
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Final, NoReturn

import numpy as np

from manifest.io.errors import SystemTableReadOnly, UnknownSystemTable
from paimon_base.errors import InvalidArgument, UnsupportedType, did_you_mean
from paimon_base.lazy import cached_property
from sparkexpr.values.column_type import ColumnType, Kind, Plain

SCHEMA, SNAPSHOT, TAG, CHANGELOG, CONSUMER, BRANCH = "schema-", "snapshot-", "tag-", "changelog-", "consumer-", "branch-"
LATEST, EARLIEST, ROLLBACK = "LATEST", "EARLIEST", "ROLLBACK"
BUCKET = "bucket-"
EXTERNAL_PATHS: Final = "data-file.external-paths"
"""Option with directories outside of the table for its data files."""
POSTPONE_BUCKET = -2
MAIN_BRANCH = "main"
_BRANCH_MARK = "$branch_"
_NO_NAME = frozenset("/\\\0$")
_UNSAFE = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
_ALL_DIGITS = Context(prec=80)
_DIGITS = {"ms": 3, "us": 6, "ns": 9}
SYSTEM_TABLES: Final = tuple(
    sorted(
        (
            "audit_log",
            "binlog",
            "ro",
            "aggregation_fields",
            "branches",
            "buckets",
            "consumers",
            "file_key_ranges",
            "files",
            "manifests",
            "options",
            "partitions",
            "row_tracking",
            "schemas",
            "snapshots",
            "statistics",
            "table_indexes",
            "tags",
        )
    )
)
_MARK = "$"
_BRANCH = "branch_"


@dataclass(frozen=True)
class TablePaths:
    """Paths of the table at ``root``.

    Metadata paths need only ``root``, data paths also the partition columns. Data, manifests and index files of every branch are in the main
    directories. A branch has its own metadata.

    >>> TablePaths("/w/t").snapshot_file(3)
    '/w/t/snapshot/snapshot-3'
    """

    root: str
    partition_keys: tuple[str, ...] = ()
    partition_types: tuple[ColumnType, ...] = ()
    default_partition: str = "__DEFAULT_PARTITION__"
    legacy_names: bool = True
    data_directory: str | None = None
    index_in_data_directory: bool = False
    branch: str = MAIN_BRANCH
    metadata_root: str = field(init=False, repr=False, compare=False)
    """Parent of this branch's metadata directories: ``schema``, ``snapshot``, ``tag``, ``changelog`` and ``consumer``."""
    schemas: str = field(init=False, repr=False, compare=False)
    """Directory of the schema files."""
    snapshots: str = field(init=False, repr=False, compare=False)
    """Directory of the snapshot files and their hints."""
    latest_hint: str = field(init=False, repr=False, compare=False)
    """Hint with the newest snapshot's id."""
    data: str = field(init=False, repr=False, compare=False)
    """Parent of the partitions and buckets."""
    pending_history: str = field(init=False, repr=False, compare=False)
    """Pending file of a rollback or fast-forward. Other engines ignore it."""

    def __post_init__(self) -> None:
        root = self.root if self.branch == MAIN_BRANCH else f"{self.root}/branch/{BRANCH}{self.branch}"
        snapshots = f"{root}/snapshot"
        vars(self).update(
            metadata_root=root,
            schemas=f"{root}/schema",
            snapshots=snapshots,
            latest_hint=f"{snapshots}/{LATEST}",
            pending_history=f"{snapshots}/{ROLLBACK}",
            data=f"{self.root}/{self.data_directory.strip('/')}" if self.data_directory else self.root,
        )

    @cached_property
    def branches(self) -> str:
        """Directory of the branches."""
        return f"{self.root}/branch"

    @cached_property
    def tags(self) -> str:
        """Directory of the tags."""
        return f"{self.metadata_root}/tag"

    @cached_property
    def changelogs(self) -> str:
        """Directory of snapshot copies for kept changelogs."""
        return f"{self.metadata_root}/changelog"

    @cached_property
    def consumers(self) -> str:
        """Directory of the consumers' positions."""
        return f"{self.metadata_root}/consumer"

    @cached_property
    def writers(self) -> str:
        """Directory of commit markers and batch announcements.

        Other engines ignore it.
        """
        return f"{self.metadata_root}/writer"

    @cached_property
    def manifests(self) -> str:
        """Directory of manifests, manifest lists and index manifests."""
        return f"{self.root}/manifest"

    @cached_property
    def indexes(self) -> str:
        """Directory of index files outside data directories."""
        return f"{self.root}/index"

    @cached_property
    def all_statistics(self) -> str:
        """Directory of the ANALYZE results."""
        return f"{self.root}/statistics"

    @cached_property
    def repairs(self) -> str:
        """Directory of copies of repaired or removed files.

        Other engines and orphan removal ignore it.
        """
        return f"{self.root}/_repair"

    @cached_property
    def earliest_hint(self) -> str:
        """Hint with the oldest snapshot's id."""
        return f"{self.snapshots}/{EARLIEST}"

    def schema_file(self, schema_id: int) -> str:
        """Return the path of a schema version."""
        return f"{self.schemas}/{SCHEMA}{schema_id}"

    def snapshot_file(self, snapshot_id: int) -> str:
        """Return the path of a snapshot.

        Its appearance is the commit.
        """
        return f"{self.snapshots}/{SNAPSHOT}{snapshot_id}"

    def changelog_file(self, snapshot_id: int) -> str:
        """Return the path of a kept changelog.

        It has the content of the expired snapshot.
        """
        return f"{self.changelogs}/{CHANGELOG}{snapshot_id}"

    def tag(self, name: str) -> str:
        """Return the path of a tag."""
        return f"{self.tags}/{TAG}{name}"

    def consumer(self, consumer_id: str) -> str:
        """Return the path of a consumer's position."""
        return f"{self.consumers}/{CONSUMER}{consumer_id}"

    def writer(self, user: str) -> str:
        """Return the path of a user's batch announcement."""
        return f"{self.writers}/writer-{user}"

    def manifest(self, name: str) -> str:
        """Return the path of a manifest or manifest list.

        Also of an index manifest.
        """
        return f"{self.manifests}/{name}"

    def statistics(self, name: str) -> str:
        """Return the path of an ANALYZE result."""
        return f"{self.all_statistics}/{name}"

    def partition_dir(self, partition: tuple[Plain, ...]) -> str:
        """Return ``k1=v1/k2=v2`` below the data directory.

        Several partitions may share one directory (null, '' and ' ').
        """
        parts = (
            f"{escape(key)}={escape(partition_text(value, column, self.default_partition, legacy=self.legacy_names))}"
            for key, value, column in zip(self.partition_keys, partition, self.partition_types, strict=True)
        )
        return "/".join((self.data, *parts))

    def bucket_dir(self, partition: tuple[Plain, ...], bucket: int) -> str:
        """Return the directory of a bucket's data files.

        >>> TablePaths("/w/t").bucket_dir((), 7), TablePaths("/w/t").bucket_dir((), -2)
        ('/w/t/bucket-7', '/w/t/bucket-postpone')
        """
        return f"{self.partition_dir(partition)}/{BUCKET}{'postpone' if bucket == POSTPONE_BUCKET else bucket}"

    def data_file(self, partition: tuple[Plain, ...], bucket: int, name: str, external: str | None = None) -> str:
        """Return the path of a data file.

        ``external`` (the entry's ``_EXTERNAL_PATH``) has priority.
        """
        return local_form(external) if external else f"{self.bucket_dir(partition, bucket)}/{name}"

    def extra_file(self, data_file: str, name: str) -> str:
        """Return the path of a side file (``<data file>.index``)."""
        return f"{data_file.rpartition('/')[0]}/{name}"

    def index(self, name: str, partition: tuple[Plain, ...] = (), bucket: int = 0, external: str | None = None) -> str:
        """Return the path of a hash or deletion-vector index file."""
        if external:
            return local_form(external)
        return f"{self.bucket_dir(partition, bucket)}/{name}" if self.index_in_data_directory else f"{self.indexes}/{name}"

    def for_branch(self, branch: str) -> TablePaths:
        """Return the paths of another branch."""
        return replace(self, branch=branch)


@dataclass(frozen=True, slots=True)
class FileNames:
    """Unique file names: ``<prefix><uuid>-<n><suffix>``, with a UUID per object.

    With ``commit_id`` they are ``<prefix><commit_id>-<uuid>-<n><suffix>``, so an abort can identify its files.
    Readers use only the prefix and, for the format, the last extension.
    """

    prefix: str
    suffix: str = ""
    commit_id: str | None = None
    _uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    _counter: Iterator[int] = field(default_factory=itertools.count)

    def next(self) -> str:
        """Return a new name. Thread-safe.

        >>> FileNames("data-", ".parquet", commit_id="c1").next()
        'data-c1-...-0.parquet'
        """
        lead = f"{self.prefix}{self.commit_id}-" if self.commit_id else self.prefix
        return f"{lead}{self._uuid}-{next(self._counter)}{self.suffix}"


def parse_number(name: str, prefix: str) -> int | None:
    """Return the number in ``<prefix><decimal>``, None for other names.

    Leading zeros are not allowed.

    >>> parse_number("snapshot-12", "snapshot-"), parse_number("snapshot-12.tmp", "snapshot-"), parse_number("snapshot-012", "snapshot-")
    (12, None, None)
    """
    digits = name.removeprefix(prefix)
    is_number = name.startswith(prefix) and digits.isascii() and digits.isdecimal() and len(digits) <= 19
    return int(digits) if is_number and str(int(digits)) == digits else None


def split_branch(path: str) -> tuple[str, str]:
    """Return the table's directory and the branch of a path.

    Paimon's form is ``<table>$branch_<name>``. Raises ``InvalidArgument`` for an invalid branch name.

    >>> split_branch("/w/t$branch_dev"), split_branch("/w/t")
    (('/w/t', 'dev'), ('/w/t', 'main'))
    """
    directory, mark, branch = path.rpartition(_BRANCH_MARK)
    if not mark or "/" in branch.rstrip("/"):
        return path, MAIN_BRANCH
    return directory, branch.rstrip("/") if branch.rstrip("/") == MAIN_BRANCH else branch_name(branch.rstrip("/"))


def with_branch(path: str, branch: str) -> str:
    """Return the path of a branch of a table.

    Raises as ``split_branch`` does.

    >>> with_branch("/w/t/", "dev"), with_branch("/w/t", "main")
    ('/w/t$branch_dev', '/w/t')
    """
    root = split_branch(path)[0].rstrip("/")
    return root if branch == MAIN_BRANCH else f"{root}{_BRANCH_MARK}{branch_name(branch)}"


def branch_name(name: str) -> str:
    """Return ``name`` if valid for a branch other than main.

    Raises ``InvalidArgument``.
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"a branch name must be a string, not {name!r}")
    if name == MAIN_BRANCH:
        raise InvalidArgument("'main' exists in every table; choose another branch name")
    if name.isdecimal():
        raise InvalidArgument(f"'{name}' is not a valid branch name: it is a number")
    return _plain(name, "branch")


def tag_name(name: str) -> str:
    """Return ``name`` if valid for a tag. Raises ``InvalidArgument``."""
    return _plain(name, "tag")


def consumer_name(name: str) -> str:
    """Return ``name`` if valid for a consumer. Raises ``InvalidArgument``."""
    return _plain(name, "consumer")


def _plain(name: str, what: str) -> str:
    if not name.strip() or name.startswith(".") or not _NO_NAME.isdisjoint(name):
        raise InvalidArgument(f"'{name}' is not a valid {what} name")
    return name


def local_form(path: str) -> str:
    """Return an absolute path without the ``file:`` scheme.

    Paimon writes that scheme to ``_EXTERNAL_PATH``.
    """
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path


def escape(text: str) -> str:
    """Escape ``text`` as one path component.

    Unsafe characters become ``%`` and two upper-case hex digits.

    >>> escape("10:30 a/b")
    '10%3A30 a%2Fb'
    """
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def partition_text(value: Plain, column: ColumnType, default_name: str, *, legacy: bool) -> str:
    """Return the unescaped directory text of a plain value.

    Null and blank text become ``default_name``. ``legacy`` is the option ``partition.legacy-name``: Java's ``toString`` (dates are epoch
    days) instead of SQL casts. Raises ``UnsupportedType`` for legacy names of binary values, which Paimon itself cannot reproduce.

    >>> partition_text(20454, ColumnType(Kind.DATE), "-", legacy=True), partition_text(20454, ColumnType(Kind.DATE), "-", legacy=False)
    ('20454', '2026-01-01')
    """
    text = None if value is None else value_spelled(value, column, legacy=legacy)
    return default_name if text is None or not text.strip() else text


def value_spelled(value: Plain, column: ColumnType, *, legacy: bool) -> str:
    """Return a non-null value as unescaped partition text."""
    match column.kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DECIMAL:
            return f"{Decimal(int(value or 0)).scaleb(-column.scale, _ALL_DIGITS):f}" if column.scale else str(value)
        case Kind.FLOAT | Kind.DOUBLE:
            return java_float_text(float(value or 0.0), single=column.kind is Kind.FLOAT)
        case Kind.BINARY | Kind.VARBINARY:
            if legacy:
                raise UnsupportedType("a binary partition column has no reproducible directory with 'partition.legacy-name'='true'")
            return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        case Kind.DATE if not legacy:
            return _date_text(int(value or 0))
        case Kind.TIME if not legacy:
            return _time_text(int(value or 0), column.precision)
        case Kind.TIMESTAMP | Kind.TIMESTAMP_LTZ:
            return _timestamp_text(int(value or 0), column, legacy=legacy)
        case _:
            return str(value)


def java_float_text(value: float, *, single: bool) -> str:
    """Return the shortest text in Java's notation.

    >>> java_float_text(1.5, single=False), java_float_text(1e10, single=False), java_float_text(0.1, single=True)
    ('1.5', '1.0E10', '0.1')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(str(np.float32(value)) if single else repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0") or "0"
    point = len(text) + int(exponent)  # digits before the decimal point
    prefix = "-" if sign else ""
    text = text.rstrip("0") or "0"
    if text == "0":
        return f"{prefix}0.0"
    if -3 < point <= 7:
        integer_part = text[: max(point, 0)].ljust(point, "0") or "0"
        fraction = "0" * max(-point, 0) + text[max(point, 0) :] or "0"
        return f"{prefix}{integer_part}.{fraction}"
    return f"{prefix}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _date_text(days: int) -> str:
    text = str(np.datetime64(days, "D"))
    return f"+{text}" if text[4] != "-" and not text.startswith("-") else text


def _time_text(millis: int, precision: int) -> str:
    text = f"{millis // 3_600_000:02d}:{millis // 60_000 % 60:02d}:{millis // 1000 % 60:02d}"
    return f"{text}.{f'{millis % 1000:03d}'[:precision]}" if precision else text


def _timestamp_text(value: int, column: ColumnType, *, legacy: bool) -> str:
    digits = _DIGITS[column.unit]
    seconds, fraction = divmod(value, 10**digits)
    if not legacy and column.kind is Kind.TIMESTAMP_LTZ:
        offset = datetime.fromtimestamp(seconds, UTC).astimezone().utcoffset()
        seconds += int(offset.total_seconds()) if offset else 0
    days, clock = divmod(seconds, 86_400)
    hour, minute, second = clock // 3600, clock // 60 % 60, clock % 60
    nanos = f"{fraction * 10 ** (9 - digits):09d}"
    if not legacy:
        text = f"{_date_text(days)} {hour:02d}:{minute:02d}:{second:02d}"
        return f"{text}.{nanos[: column.precision]}" if column.precision else text
    text = f"{_date_text(days)}T{hour:02d}:{minute:02d}"
    if second or fraction:
        text += f":{second:02d}"
    if fraction:
        text += "." + nanos[: 3 if nanos.endswith("000000") else 6 if nanos.endswith("000") else 9]
    return text


def split_system(path: str) -> tuple[str, str] | None:
    """Split a path into table and system table name.

    The table may be a branch. The name follows the last ``$``, or precedes ``$branch_<name>``. Returns None if there is no such name. The
    caller must check that the system table exists, and that no table has the whole path.

    >>> split_system("/w/t$branch_dev$files"), split_system("/w/t$files$branch_dev"), split_system("/w/t$branch_dev")
    (('/w/t$branch_dev', 'files'), ('/w/t$branch_dev', 'files'), None)
    """
    path = str(path).rstrip("/")
    table, mark, name = path.rpartition(_MARK)
    if not mark or "/" in name or not table or table.endswith("/"):
        return None
    if not name.startswith(_BRANCH):
        return table, name
    root, branch = split_branch(path)
    inner = split_system(root)
    return None if inner is None or branch == MAIN_BRANCH or inner[1] not in SYSTEM_TABLES else (with_branch(inner[0], branch), inner[1])


def refuse_system(table: str, name: str) -> NoReturn:
    """Raise an error for using a system table as table.

    Raises ``SystemTableReadOnly`` or ``UnknownSystemTable``.
    """
    if name in SYSTEM_TABLES:
        raise SystemTableReadOnly(f"{table}${name}: a system table can only be scanned, and nothing was done; the table itself is {table}")
    raise UnknownSystemTable(
        f"{table}: there is no system table '{name}'{did_you_mean(name, SYSTEM_TABLES)}; there are: {', '.join(SYSTEM_TABLES)}"
    )
