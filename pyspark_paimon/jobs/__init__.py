"""Parts that both executors share: counts, publishing, checks, incremental scans, progress.

Public: ``counting``, ``publish``, ``fsck``, ``progress``.
"""
