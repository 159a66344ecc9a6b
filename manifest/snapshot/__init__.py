"""Snapshots and tags: their JSON, and the one operation that makes a snapshot exist (put-if-absent).

Knows no manifests. Public: ``Snapshot``, ``SnapshotManager`` (manager), ``Tag`` (tag),
``SnapshotCommit`` (snapshot_commit).
"""
