"""Snapshots and tags, and the atomic creation of a snapshot.

Does not read manifests. Public: ``Snapshot``, ``SnapshotManager`` (manager), ``Tag`` (tag),
``SnapshotCommit`` (snapshot_commit).
"""
