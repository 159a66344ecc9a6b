"""Metadata part of a table check, over every state.

Yields each data file once, for ``pyspark_paimon.plugins.fsck.files``. Public: ``walk``, ``repair``, ``Problem`` (problem).
"""
