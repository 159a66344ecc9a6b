"""Levels of a bucket, and the universal compaction strategy.

Pure functions of file metadata, so a simulator can run them without data. Public: ``Levels``, ``SortedRun`` (sorted_runs),
``UniversalCompaction`` (universal), ``trivial_move``.
"""
