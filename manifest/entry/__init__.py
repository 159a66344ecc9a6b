"""Manifests: entries of data and index files, as objects and as columns, their lists, merging, and the bounds that prune them.

Knows which files are live; not what is in them. Public: ``DataFileMeta`` (data_file), ``ManifestEntry``, ``EntryColumns``
(columns), ``live``.
"""
