"""Metadata as Arrow tables and readable texts.

They cover files, snapshots, history, indexes and ``explain``.
Public: ``explain``, ``table_views``, ``index_views``.
"""
