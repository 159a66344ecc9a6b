"""Jobs that both engines run alike, described as plain values: compaction, index rewrite, fsck, incremental scans; their progress.

Public: ``compaction``, ``index_rewrite``, ``fsck``, ``progress``.
"""
