"""Comparing an index with the rows that it speaks of.

Builds the twin from the rows and tells where they differ; used by ``fsck`` and by index health. Public: ``health``,
``rebuild``.
"""
