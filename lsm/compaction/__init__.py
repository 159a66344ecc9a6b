"""Compaction of one bucket.

Covers rewrites and moves of the picked files, changelogs, deletion vectors and clustering.
Public: ``BucketCompactor``, ``CompactionContext`` (compactor), ``MergeTreeRewriter`` (rewriter).
"""
