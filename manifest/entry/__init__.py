"""Manifests: entries, manifest lists, merging, and pruning by bounds.

Determines which files are live, but does not read them. Public: ``DataFileMeta`` (data_file), ``ManifestEntry``, ``EntryColumns``
(columns), ``live``.
"""
