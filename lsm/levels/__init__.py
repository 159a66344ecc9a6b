"""The shape of a bucket: sorted runs in levels, and which of them universal compaction picks.

Pure functions of file metadata: a simulator drives them without data. Public: ``Levels``, ``SortedRun`` (sorted_runs),
``UniversalCompaction`` (universal), ``trivial_move``.
"""
