"""Metadata as Arrow tables and texts for people.

They cover files, snapshots, history, indexes and ``explain``.
Public: ``explain``, ``table_views``, ``index_views``.
"""
