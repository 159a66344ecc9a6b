"""Code that both executors share.

Counts, publishing, checks, incremental scans and progress.
Public: ``counting``, ``progress``.
"""
