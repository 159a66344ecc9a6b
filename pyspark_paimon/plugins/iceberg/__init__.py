"""Iceberg metadata beside the commits of a table, for readers of Iceberg.

Knows Iceberg's table metadata, manifest lists and manifests. Public: ``publish``, ``orphans``.
"""
