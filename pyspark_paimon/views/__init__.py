"""Tables and texts for people: files, snapshots, history, indexes, ``explain``.

Public: ``explain``, ``table_views``, ``index_views``.
"""
