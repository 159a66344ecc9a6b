"""Sizes and counts at which the code changes its behaviour.

They are fields of one object that tests can shrink. A threshold decides which code runs, never its result.
Code reads ``thresholds`` at each use, so that ``use_thresholds`` takes effect at once.
Limits set by a file format, Java or Arrow, and options of users, are defined elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self


def _limit(default: int, tiny: int, crossing: str) -> Any:
    """Declare a threshold.

    Args:
        default: Value in production.
        tiny: Value that a table of 100 rows crosses.
        crossing: Unit, and the effect of crossing it.
    """
    return field(default=default, metadata={"tiny": tiny, "crossing": crossing})


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """All thresholds of a process.

    >>> Thresholds().group_rows, Thresholds.tiny().group_rows
    (524288, 8)
    """

    @classmethod
    def tiny(cls) -> Self:
        """Return thresholds that small test tables cross.

        A table of 100 rows in five writes crosses all of them.
        """
        return cls(**{threshold.name: threshold.metadata["tiny"] for threshold in fields(cls)})

    # Writing Parquet files.
    group_rows: int = _limit(1 << 19, 8, "Rows at which a row group ends.")
    group_bytes: int = _limit(64 << 20, 2000, "In-memory bytes at which a row group ends, unless options set a smaller size.")
    page_rows: int = _limit(10_000, 3, "Maximum rows of a page.")
    # Half of the encoder's default: a lookup decodes half as much, and a file grows by a sixth of a percent.
    page_bytes: int = _limit(1 << 20, 64, "Bytes at which a page ends, unless an option sets another size.")
    sample_rows: int = _limit(1024, 4, "Rows sampled to decide whether values repeat.")
    sample_window: int = _limit(1 << 16, 8, "First rows of a file from which samples are drawn.")
    repeats: int = _limit(4, 2, "Mean number of equal values from which a dictionary is used.")
    most_distinct: int = _limit(1 << 15, 2, "Largest number of values of a dictionary. More do not fit the cache.")
    fewest_rows: int = _limit(4096, 4, "Rows of a file below which no encoding is tried.")
    trial_rows: int = _limit(4096, 3, "Rows of each of the two ranges that a trial encodes.")
    kept_rows: int = _limit(1 << 18, 20, "Rows that reuse a choice of encodings. Trials then cost a few percent of the encoding time.")
    # The encoder copies a value five times to find its bounds.
    bulky: int = _limit(1 << 20, 12, "Bytes of a value beyond which the encoder drops dictionaries and bounds.")
    file_write_bytes: int = _limit(1 << 16, 16, "Bytes from which an encoder's write is passed on at once. Smaller writes are joined.")

    # Texts in memory.
    text_rows: int = _limit(1 << 17, 8, "Rows of an input from which its texts may be dictionary encoded. Fewer rows fit the cache.")
    text_sample_rows: int = _limit(4096, 8, "Rows sampled to count distinct texts.")
    text_sample_distinct: int = _limit(256, 3, "Maximum distinct texts of a sample for a dictionary.")
    text_dictionary: int = _limit(1 << 15, 4, "Texts of a dictionary. More need wider codes.")
    text_sort_words: int = _limit(8, 1, "Words of eight bytes by which texts are sorted. Arrow compares texts that are equal up to there.")

    # Batches of readers.
    batch_bytes: int = _limit(16 << 20, 400, "Approximate decoded bytes of a batch.")
    batch_rows: int = _limit(1 << 17, 5, "Maximum rows of a batch.")
    batch_column_bytes: int = _limit(64 << 10, 40, "Decoded bytes of a column in a batch up to which a batch of many columns grows.")
    batch_growth: int = _limit(8, 2, "Times that such a batch may exceed its bytes.")
    masked_bytes: int = _limit(64 << 20, 300, "Decoded bytes of a row group up to which a second decoder filters all of it at once.")
    blob_batch_bytes: int = _limit(16 << 20, 200, "Bytes of the blobs of a batch.")
    blob_batch_rows: int = _limit(1 << 16, 3, "Maximum blobs of a batch.")

    # Reading Parquet files.
    footer_read_bytes: int = _limit(64 << 10, 256, "Bytes of a file's end that are read first. Longer footers need a second read.")
    footer_seal_bytes: int = _limit(1024, 16, "Bytes read before a footer. A longer checksum block needs a second read.")
    footer_index_bytes: int = _limit(256 << 10, 3000, "Bytes of a footer beyond which page indexes are not used.")
    offset_index_ahead_bytes: int = _limit(
        64 << 10, 200, "Bytes of offset indexes up to which the indexes of all row groups are decoded together."
    )
    paged_rows: int = _limit(32 << 10, 4, "Rows of a row group below which it is decoded whole, without its page indexes.")
    held_file_bytes: int = _limit(128 << 10, 400, "Decoded bytes of a data file up to which its decoded columns are cached.")
    one_thread_rows: int = _limit(8 << 10, 6, "Rows that one thread decodes.")
    masked_chunk_bytes: int = _limit(
        1 << 20, 100, "Compressed bytes of column chunks from which a second decoder filters while it decodes."
    )
    small_dictionary_bytes: int = _limit(64 << 10, 60, "Bytes of a chunk's dictionary up to which its texts stay one.")
    probe_pays: int = _limit(
        4, 1, "Filter columns have at least this many times the bytes of a Bloom filter's blocks, or a dictionary, that is searched."
    )
    probe_bytes: int = _limit(1 << 20, 120, "Bytes of a dictionary, and of a Bloom filter's blocks, up to which it is searched.")
    bloom_read_bytes: int = _limit(64 << 10, 80, "Bytes up to which a Bloom filter is read at once. Of a larger one, blocks are read.")
    page_thread_bytes: int = _limit(256 << 10, 300, "Compressed bytes of pages from which several threads decode them.")
    coded_rows: int = _limit(8, 2, "Rows of a read up to which dictionary pages are searched for them. For more, pages are decoded.")
    coded_page_rows: int = _limit(1 << 15, 2000, "Rows of a page up to which it is searched for a few rows.")
    pages_pay: int = _limit(2, 1, "Pages are read separately if at most one in this number is needed.")
    sparse: int = _limit(8, 2, "At most one row in this number is needed: pages are decoded separately, texts stay dictionaries.")
    dense: int = _limit(2, 1, "More than one row in this number is needed: the other rows are decoded too.")
    unasked_bytes: int = _limit(
        8 << 20, 200, "Bytes of column chunks up to which the returned columns are fetched together with the filtered ones."
    )
    text_search_bytes: int = _limit(32 << 20, 200, "Compressed bytes of row groups that are searched for a text together.")
    plain_text_rows: int = _limit(1 << 16, 6, "Rows of a file below which its texts are merged without dictionaries.")
    listed_values: int = _limit(64, 4, "Values of an IN list from which rows are looked up in a set.")

    # Other formats.
    orc_stripe_bytes: int = _limit(64 << 20, 1000, "Bytes of an ORC stripe, unless an option sets another size.")
    orc_tail_bytes: int = _limit(64 << 10, 64, "Bytes of an ORC file's end that are read first.")
    avro_block_bytes: int = _limit(256 << 10, 200, "Encoded bytes of a block of an Avro data file.")
    avro_group_bytes: int = _limit(1 << 20, 300, "Compressed bytes of Avro blocks that are decoded together.")
    avro_window_bytes: int = _limit(256 << 10, 128, "Bytes of an Avro data file that are read at once.")

    # Writes.
    route_rows: int = _limit(1 << 17, 16, "Buffered rows of a write that are routed to buckets together.")
    route_bytes: int = _limit(16 << 20, 1000, "Bytes of such rows.")
    route_part_rows: int = _limit(1 << 18, 5, "Rows whose bucket one thread computes.")
    hash_rows: int = _limit(1 << 16, 4, "Rows hashed at once. Their words stay in the processor's cache.")
    source_bytes: int = _limit(1 << 30, 2500, "Bytes of routed rows that form one source, and of rows that wait for their partitions.")
    piece_bytes: int = _limit(1 << 30, 700, "Expanded bytes beyond which rows are cut into pieces.")
    open_files: int = _limit(128, 1, "Open buckets beyond which a bucket that frees memory also closes its files.")
    kept_share: int = _limit(8, 8, "Buckets free memory until at most one part in this number of the write buffer stays used.")
    file_checks: int = _limit(8, 8, "Checks of the size of a file until it reaches its target.")
    few_sources: int = _limit(64, 2, "Parts of a buffer that are sorted as they are. More are cut into blocks.")
    block_rows: int = _limit(1 << 16, 24, "Maximum rows of a block of a sort buffer, and of small parts that are joined.")
    block_bytes: int = _limit(4 << 20, 300, "Bytes of such a block.")
    emit_bytes: int = _limit(8 << 20, 300, "Bytes of sorted rows that a sort buffer emits together.")
    spill_fan_in: int = _limit(64, 2, "Spilled runs that are merged together. More are merged in rounds.")
    spill_batch_bytes: int = _limit(2 << 20, 300, "In-memory bytes of a batch of a spilled run.")
    spill_fewest_rows: int = _limit(1024, 3, "Minimum rows of a batch of a spilled run.")
    spill_fewest_bytes: int = _limit(1 << 20, 100, "Bytes up to which a batch keeps the minimum number of rows.")
    one_by_one_hashes: int = _limit(4, 3, "Key hashes of a call that are looked up in their sorted form one by one.")
    scanned_hashes: int = _limit(20_000, 30, "Key hashes of all calls up to which index files are scanned. For more they are sorted.")
    listed_keys: int = _limit(1000, 3, "Keys without a known partition that are looked up one by one. Of more, only the bounds are used.")
    buckets_a_commit: int = _limit(64, 2, "Buckets whose compactions after a commit are committed together.")
    shown_values: int = _limit(1000, 2, "Rejected rows of a write whose reasons show the value.")

    # Messages of change data capture.
    message_rows: int = _limit(1 << 16, 3, "Rows of change messages that form a batch.")
    message_bytes: int = _limit(32 << 20, 2000, "Bytes of their texts.")

    # Merges and compactions.
    many_runs: int = _limit(8, 2, "Runs of a merge from which small ones are joined.")
    small_run_rows: int = _limit(1 << 14, 4, "Maximum rows of a small run.")
    gathered_bytes: int = _limit(32 << 20, 300, "Bytes of small runs that are joined.")
    merge_bytes: int = _limit(96 << 20, 2000, "Bytes of the batches of all runs of a merge.")
    merge_batch_bytes: int = _limit(1 << 20, 100, "Minimum bytes of a batch of such a run.")
    sum_rounds: int = _limit(32, 1, "Rounds of sums, after which keys with more versions are summed one by one.")
    kept_order_rows: int = _limit(64 << 10, 4, "Rows that order_by holds before it drops what the limit excludes.")
    cluster_sample_rows: int = _limit(1 << 17, 8, "Rows sampled for the bounds of a clustering.")

    candidate_rows: int = _limit(
        1 << 14, 8, "Rows of a section from which on its runs are read alone, or searched for keys that may match."
    )
    keys_per_range: int = _limit(64, 2, "Keys for each key page of a file from which on pages are chosen by the first and the last key.")
    rows_per_search: int = _limit(4, 1, "Least rows of runs that are read alone for each of their keys that is searched in other runs.")
    candidate_keys: int = _limit(50_000, 40, "Most keys of a section that are merged alone.")
    files_searched: int = _limit(16, 2, "Files of a section on distant storage that are searched for keys together.")
    rows_per_candidate: int = _limit(32, 2, "Least rows of a section for each such key.")

    # Scans.
    plan_files: int = _limit(16_384, 2, "Files of a plan up to which its entries stay decoded.")
    plan_files_at_once: int = _limit(1024, 2, "Files of a plan that are created together.")
    block_residuals: int = _limit(16, 1, "Residual filters of partitions up to which they select blocks of manifests.")
    short_filter: int = _limit(16, 2, "Leaves of a filter, and values of a list, up to which all of its bounds are compared.")
    bucket_keys: int = _limit(1000, 2, "Combinations of bucket-key values up to which their buckets are computed.")
    exact_distinct: int = _limit(1 << 16, 4, "Distinct values that analyze counts exactly. More are estimated.")
    checked_buckets: int = _limit(8, 1, "Buckets whose key hashes a check of files keeps in memory.")

    # Manifests and snapshots.
    manifest_block_bytes: int = _limit(16_000, 400, "Approximate bytes of a block of a clustered manifest.")
    manifest_bytes_together: int = _limit(4 << 20, 2000, "Compressed bytes of manifests that are decoded together.")
    fewest_blocks: int = _limit(4, 2, "Blocks of a manifest from which their ranges are stored.")
    narrowed_manifest_bytes: int = _limit(32 << 10, 1200, "Bytes of a manifest below which it is read whole.")
    manifest_head_bytes: int = _limit(256 << 10, 64, "Bytes of a manifest that are read first for its header.")
    manifest_gap_bytes: int = _limit(32 << 10, 16, "Unneeded bytes between blocks that are read too.")
    shared_entries: int = _limit(
        1024, 2, "Entries of selected blocks that are cached for all filters. Of more, only the matches of one filter are."
    )
    held_objects: int = _limit(8192, 2, "Entries of a manifest whose file objects are cached.")
    records_one_by_one: int = _limit(16, 1, "Records of a manifest up to which they are decoded one after the other.")
    bounds_one_by_one: int = _limit(64, 1, "Entries whose null counts are decoded one by one.")
    partitions_one_by_one: int = _limit(64, 4, "Entries whose partitions are not grouped.")
    ranges_one_by_one: int = _limit(16, 1, "Files whose value ranges are collected one by one.")
    range_bytes: int = _limit(4096, 24, "Bytes of the column ranges of a manifest. Further columns have none.")
    held_names: int = _limit(100_000, 9, "File names of manifests that are kept in memory.")
    avro_metadata_block_bytes: int = _limit(64_000, 300, "Bytes of a block of other Avro metadata.")
    clustered_entries: int = _limit(500, 3, "Entries of a commit from which they are sorted and clustered.")
    expired_at_once: int = _limit(1000, 2, "Snapshots that one pass of an expiry removes.")
    snapshots_ahead: int = _limit(8, 2, "Snapshots that are prefetched from a remote store.")

    # Stores.
    joined_gap_bytes: int = _limit(1 << 20, 64, "Unneeded bytes between two ranges of an object that are read too.")
    object_tail_bytes: int = _limit(64 << 10, 200, "Bytes of an object's end that the first read of a data file fetches.")
    object_head_bytes: int = _limit(1 << 20, 200, "Bytes of an object that a read of a side file fetches.")
    object_held_bytes: int = _limit(64 << 20, 2000, "Bytes of one object that are cached.")
    deleted_together: int = _limit(1000, 2, "Objects that one request deletes.")

    # Indexes.
    bloom_spread_bits: int = _limit(1 << 26, 16, "Bits of a bloom filter beyond which hashes are sorted before they are set.")
    bloom_whole_probes: int = _limit(64, 6, "Probes of values up to which their bits are computed and read one by one.")
    bloom_step: int = _limit(1024, 2, "Hashes that are probed at once.")
    bloom_few_hashes: int = _limit(1 << 16, 8, "Hashes that are counted exactly. Of more, a sample is counted.")
    index_block_rows: int = _limit(10_000, 8, "Rows of a block of an index of row blocks, unless an option sets another number.")
    index_blocks: int = _limit(1024, 4, "Maximum blocks of such an index. Neighbours are joined to stay below.")
    small_bloom_bytes: int = _limit(1024, 4, "Bytes of a bloom filter from which a file gets row blocks, too.")
    block_literals: int = _limit(256, 2, "Values of an IN list up to which row blocks are evaluated.")
    ngram_block_rows: int = _limit(2000, 8, "Rows of a block of an n-gram filter, unless an option sets another number.")
    ngram_blocks: int = _limit(4096, 4, "Maximum blocks of an n-gram filter. Neighbours are joined to stay below.")
    ngram_segments: int = _limit(4096, 2, "Maximum segments of 512 bits of a block of an n-gram filter, a power of two.")
    ngram_bytes: int = _limit(16 << 20, 600, "Bytes of an n-gram filter beyond which the filters of its blocks are halved.")
    ngram_pending: int = _limit(1 << 19, 16, "N-grams of a block that are collected before their bits are set.")
    ngram_part_bytes: int = _limit(1 << 18, 7, "Bytes of texts that are cut into n-grams at once.")
    ngram_probes: int = _limit(64, 2, "N-grams of a search that are looked up. Of more, some are.")
    index_sample_rows: int = _limit(1024, 2, "Rows sampled for repeated texts before an index takes them.")
    index_check_bytes: int = _limit(64 << 10, 64, "Bytes of a bitmap's directory that are compared with the options.")
    row_sets: int = _limit(4096, 2, "Values of an IN list up to which an index makes one row set for each.")
    dense_sets: int = _limit(64, 1, "Values of a bitmap index up to which it counts the rows of a small selection by value.")
    compared_values: int = _limit(512, 2, "Distinct values for which a rebuilt index and the stored one are compared.")
    large_group: int = _limit(256, 3, "Rows of a set from which it becomes a bitmap object.")
    row_set_part: int = _limit(16_384, 2, "Row sets that are serialized in one step. Their temporaries stay in the cache.")
    posting_rows: int = _limit(1 << 16, 3, "Rows of a secondary index that are encoded in one step. Their temporaries stay in the cache.")
    index_read_bytes: int = _limit(8 << 20, 64, "Bytes of neighbouring blocks of a secondary index that are read at once.")
    long_value_bytes: int = _limit(256, 4, "Bytes of a value from which it is hashed alone.")
    few_values: int = _limit(16, 2, "Values of one length that are hashed one by one.")
    hash_chunk: int = _limit(16_384, 3, "Values hashed in one step. Their temporaries stay in the cache.")
    group_table: int = _limit(1 << 22, 8, "Range of integers up to which they are grouped by a table. Wider ones are sorted.")

    # Jobs and tasks.
    task_bytes: int = _limit(16 << 20, 2000, "Minimum bytes of a read task.")
    open_cost_bytes: int = _limit(256 << 10, 1, "Minimum bytes that a file counts as in a task.")
    ahead_bytes: int = _limit(256 << 20, 500, "Bytes that threads decode ahead of the consumer.")
    ahead_item_bytes: int = _limit(1024, 64, "Minimum bytes that an item counts as.")
    idle_core_bytes: int = _limit(8 << 20, 1000, "Bytes of a write task while cores are idle.")
    busy_core_bytes: int = _limit(64 << 20, 4000, "Bytes of a write task where all cores are busy.")
    piece_cost_bytes: int = _limit(256 << 10, 16, "Minimum bytes that a piece of a job counts as.")
    small_bucket_bytes: int = _limit(128 << 10, 1500, "Bytes of a bucket up to which others are compacted in the same job.")
    buckets_a_job: int = _limit(64, 2, "Small buckets of one compaction job.")
    deleted_at_once: int = _limit(1000, 2, "Files that an expiry deletes between two reports of progress.")
    checked_at_once: int = _limit(64, 2, "Files that a check reads before it looks for expired snapshots again.")
    pandas_rows: int = _limit(1 << 18, 7, "Rows of a pandas frame that are converted together.")
    held_splits: int = _limit(64, 2, "Splits of a plan that is cached for the next equal scan.")
    held_manifests: int = _limit(64, 2, "Manifests of a state whose plans are cached.")
    counted_files: int = _limit(256, 2, "Files that a count reads without tasks.")
    import_block_bytes: int = _limit(4 << 20, 256, "Bytes of a CSV or JSON file that are parsed together.")

    # Spark.
    native_files: int = _limit(1000, 2, "Files of a scan up to which Spark's own Parquet reader takes them.")
    broadcast_bytes: int = _limit(10 << 20, 2000, "Bytes of data files up to which Spark may send a scan to all tasks of a join.")
    driver_bytes: int = _limit(32 << 20, 3000, "Bytes of data files that Spark's driver reads or compacts without a job.")
    answer_bytes: int = _limit(1 << 20, 300, "Bytes of rows that the driver returns without a job.")
    sent_bytes: int = _limit(256 << 10, 200, "Bytes of rows that a client sends to the driver to write them without a job.")
    wire_blob_rows: int = _limit(1 << 16, 5, "Maximum rows of a blob that a client sends.")
    wire_blob_bytes: int = _limit(8 << 20, 400, "In-memory bytes of such a blob.")
    wire_chunk_rows: int = _limit(1 << 19, 16, "Rows that a client distributes to tasks at once.")
    wire_chunk_bytes: int = _limit(64 << 20, 1000, "Bytes of such rows.")
    own_blob_rows: int = _limit(1024, 3, "Rows from which a bucket gets separate blobs.")
    check_task_bytes: int = _limit(32 << 20, 2000, "Bytes of a task of a check, while tasks are few enough.")
    fetched_merge_rows: int = _limit(20_000, 2, "Rows of a DataFrame that a client fetches to merge them itself. They travel twice.")
    fetched_merge_bytes: int = _limit(4 << 20, 200, "Estimated bytes of such a DataFrame.")
    held_merge_rows: int = _limit(100_000, 4, "Source rows of a merge that the driver does in process.")
    held_merge_bytes: int = _limit(16 << 20, 400, "Bytes of such a source.")

    # Groups of aggregates.
    folded_bytes: int = _limit(32 << 20, 1, "Bytes of folded batches from which they are folded again.")
    grouped_bytes: int = _limit(1 << 30, 1 << 20, "Bytes of groups beyond which a grouped aggregate of this process raises an error.")

    # Statements.
    listed_subquery: int = _limit(100_000, 2, "Values of a subquery after IN beyond which Spark finds the rows of a DELETE or UPDATE.")
    join_keys: int = _limit(10_000, 2, "Distinct join keys of a small table up to which they filter the large table of a query.")

    # Filter texts.
    listed_literals: int = _limit(64, 2, "Literals of an IN list from which it is read without the general parser.")
    nested_groups: int = _limit(12, 1, "Nested parentheses beyond which a filter is parsed group by group.")
    chained_values: int = _limit(16, 2, "Equalities of one column in an OR that become an IN list.")


thresholds = Thresholds()
"""The thresholds of this process. Read a field at each use: a test may change it."""


@contextmanager
def use_thresholds(base: Thresholds | None = None, **changes: int) -> Iterator[Thresholds]:
    """Use other thresholds inside the block.

    They apply to all threads of this process, and to processes forked in the block.

    Args:
        base: The thresholds. None: the current ones.
        changes: Fields that differ from ``base``.

    >>> with use_thresholds(group_rows=10):
    ...     thresholds.group_rows
    10
    """
    # One object for the process, changed in place: modules import it once, and threads of pools must see the change.
    values = vars(thresholds)
    before = values.copy()
    values.update(vars(replace(base or thresholds, **changes)))
    try:
        yield thresholds
    finally:
        values.update(before)
