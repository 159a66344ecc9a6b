"""Arguments of ``Table.compact`` checked against the schema, and the buckets that they select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from fileindex.base.errors import InvalidArgument
from fileindex.base.thresholds import thresholds
from fileindex.predicate.tree import columns_of
from manifest.entry.live import EntryFilter
from manifest.schema.bucket_mode import BucketMode
from manifest.schema.clustering import MAX_COLUMNS, NO_ORDER
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.filter.parse import Filter, bind_filter
from pyspark_paimon.request.backend import ClusterStrategyName, CompactRequest
from pyspark_paimon.request.counters import WriteCounters
from pyspark_paimon.request.partition_spec import predicate_of, spec_of
from pyspark_paimon.request.validate import checked_options, commit_identity

if TYPE_CHECKING:
    from manifest.commit.conflicts import BucketId
    from manifest.commit.message import CommitMessage
    from manifest.store import FileStore


def compact_request(
    schema: TableSchema,
    *,
    full: bool,
    partitions: Sequence[Mapping[str, object]] | None,
    filter: Filter,  # noqa: A002  # as in Table.compact
    order_by: Sequence[str] | str | None,
    strategy: ClusterStrategyName,
    options: Mapping[str, str] | None,
) -> CompactRequest:
    """The request of ``Table.compact``. Raises ``InvalidArgument``, ``InvalidFilter``, ``UnknownColumn``, ``UnsupportedOption``."""
    if partitions is not None and filter is not None:
        raise InvalidArgument("a compaction is limited by partitions or by a filter, not by both")
    predicate = bind_filter(filter, schema.column_types)
    for name in columns_of(predicate):
        if name not in schema.partition_keys:
            raise InvalidArgument(
                f"a compaction is limited by partition columns ({', '.join(schema.partition_keys) or 'none'}), not by '{name}'"
            )
    if strategy not in get_args(ClusterStrategyName):
        raise InvalidArgument(f"strategy is one of {', '.join(get_args(ClusterStrategyName))}, not {strategy!r}")
    return CompactRequest(
        commit_id=commit_identity(None),
        full=full,
        partitions=None if partitions is None else tuple(spec_of(spec, schema) for spec in partitions),
        predicate=predicate,
        order_by=() if order_by is None else _order_columns(schema, order_by, strategy),
        strategy=strategy,
        options=checked_options(options),
    )


def _order_columns(schema: TableSchema, order_by: Sequence[str] | str, strategy: ClusterStrategyName) -> tuple[str, ...]:
    if schema.bucket_mode is not BucketMode.BUCKET_UNAWARE:
        raise InvalidArgument("rows can be sorted by columns in append tables without buckets only; others have an order of their own")
    names = tuple(resolve(name, schema.column_types) for name in ([order_by] if isinstance(order_by, str) else order_by))
    if not names or len(set(names)) < len(names):
        raise InvalidArgument("order_by names each column once, and at least one")
    for name in names:
        if name in schema.partition_keys:
            raise InvalidArgument(f"order_by: '{name}' is a partition column, so all rows that are sorted together have one value of it")
        if schema.field(name).type.kind in NO_ORDER:
            raise InvalidArgument(f"order_by: '{name}' has type {schema.field(name).type}, which has no order")
    if strategy != "order" and len(names) > MAX_COLUMNS:
        raise InvalidArgument(f"strategy '{strategy}' takes at most {MAX_COLUMNS} columns; with more of them none has a say")
    return names


def wanted_entries(store: FileStore, request: CompactRequest) -> EntryFilter:
    """The partitions that the request means."""
    return EntryFilter(predicate=request.predicate if request.partitions is None else predicate_of(request.partitions, store.schema))


def wanted_buckets(store: FileStore, request: CompactRequest) -> dict[BucketId, int]:
    """(partition, bucket) with files at the newest snapshot that the request means, in order, and the bytes of these."""
    entries = store.live_entries(store.snapshots.latest(), wanted_entries(store, request))
    entries = entries.select(entries.bucket >= 0)
    codes, known = entries.partition_codes
    sizes: Counter[BucketId] = Counter()
    for code, bucket, size in zip(codes.tolist(), entries.bucket.tolist(), entries.file_size.tolist(), strict=True):
        sizes[known[code], bucket] += size
    return dict(sorted(sizes.items()))


def in_jobs(sizes: Mapping[BucketId, int], small_at_once: int) -> tuple[list[list[BucketId]], list[list[BucketId]]]:
    """What to compact in one go: buckets by themselves, and several small ones together, so many such jobs side by side.

    >>> in_jobs({(b"", 0): 9, (b"", 1): 1 << 30, (b"", 2): 9, (b"", 3): 9}, 2)
    ([[(b'', 1)]], [[(b'', 0), (b'', 2)], [(b'', 3)]])
    """
    small = [bucket for bucket, size in sizes.items() if size <= thresholds().small_bucket_bytes]
    together = min(thresholds().buckets_a_job, -(-len(small) // small_at_once)) or 1
    large = [[bucket] for bucket, size in sizes.items() if size > thresholds().small_bucket_bytes]
    return large, [small[at : at + together] for at in range(0, len(small), together)]


def compact_some(store: FileStore, request: CompactRequest, buckets: Sequence[BucketId]) -> list[CommitMessage]:
    """Do what the request asks for in some buckets; nothing for those where there is nothing to do."""
    from lsm.compaction.cluster import Clustering  # noqa: PLC0415  # a client of a server needs no storage engine
    from lsm.write.table_write import compact_together  # noqa: PLC0415  # as above

    clustering = Clustering(request.order_by, request.strategy) if request.order_by else None
    return compact_together(store, buckets, full=request.full, clustering=clustering, commit_id=request.commit_id)


def compaction_counts(messages: Sequence[CommitMessage]) -> dict[str, int]:
    """What compactions did, by the names of ``CompactResult``: a file that only changed its level was neither read nor written."""
    before = [file for message in messages for file in message.compact_before]
    after = [file for message in messages for file in message.compact_after]
    made = [file for message in messages for file in message.made_by_compaction()]
    kept = {file.file_name for file in after} - {file.file_name for file in made}
    return {
        "files_before": len(before),
        "files_after": len(after),
        "bytes_read": sum(file.file_size for file in before if file.file_name not in kept),
        "bytes_written": sum(file.file_size for file in made),
        "rows": sum(file.row_count for file in after),
        "buckets": len(messages),
    }


def write_counters(
    messages: Iterable[CommitMessage], *, rows: int, retries: int, millis: dict[str, float], bytes_in: int = 0
) -> WriteCounters:
    """The counters of what was committed."""
    told = list(messages)
    new = [file for message in told for file in message.new_files]
    made = [file for message in told for file in message.made_by_compaction()]
    before = [file for message in told for file in message.compact_before]
    return WriteCounters(
        rows=rows,
        bytes_in=bytes_in,
        files=len(new) + len(made),
        bytes_written=sum(file.file_size for file in (*new, *made)),
        compacted_files=len(before),
        compacted_bytes=sum(file.file_size for file in before),
        retries=retries,
        millis=millis,
    )


__all__ = [
    "compact_request",
    "compact_some",
    "compaction_counts",
    "in_jobs",
    "wanted_buckets",
    "wanted_entries",
    "write_counters",
]
