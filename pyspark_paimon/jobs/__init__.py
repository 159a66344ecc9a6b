"""Code that both engines share.

Counts, publishing, checks, incremental scans and progress.
Public: ``counting``, ``progress``.
"""
