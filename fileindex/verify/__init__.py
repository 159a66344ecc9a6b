"""Comparison of stored indexes with the rows of their file.

It rebuilds an index from the rows and finds differences. ``fsck`` and index health use it. Public: ``health``, ``rebuild``.
"""
