"""Expiry, tags, branches, rollback and orphan removal.

Files are deleted from the root down: a snapshot's file before the files that only it reaches. Public: ``expire_snapshots`` (snapshots),
``orphans``, ``rollback``, ``branches``.
"""
