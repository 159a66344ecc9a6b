"""Compaction of one bucket.

Covers rewrites and moves of the picked files, changelogs, deletion vectors and clustering.
Public: ``MergeTreeCompactManager``, ``MergeTreeCompactTask`` (compactor, rewriter).
"""
