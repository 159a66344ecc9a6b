"""What goes and what stays: expiry, tags, branches, rollback, orphans.

Deletes from the root: a snapshot's file before what only it reaches. Public: ``expire_snapshots`` (snapshots), ``orphans``,
``rollback``, ``branches``.
"""
