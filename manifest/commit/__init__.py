"""The commit: messages in, one snapshot out, conflicts checked against every snapshot since the base, each commit id once.

Public: ``FileStoreCommit`` (file_store_commit), ``Transaction`` (transaction), ``CommitMessage`` (message), ``conflicts``, ``history``.
"""
