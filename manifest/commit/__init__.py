"""Optimistic commits: one snapshot per commit, checked for conflicts.

An attempt is checked against every snapshot since its base. A commit id is committed once.
Public: ``FileStoreCommit`` (file_store_commit), ``Transaction`` (transaction), ``CommitMessage`` (message), ``conflicts``, ``history``.
"""
