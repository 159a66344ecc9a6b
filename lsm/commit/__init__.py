"""Row-level parts of a commit.

New sequence numbers or buckets after a lost race, and the compaction that follows.
Public: ``RowTransaction`` (row_transaction), ``resequence``, ``rebucket``, ``post_commit``.
"""
