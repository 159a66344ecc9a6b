"""Metadata part of a table check, over every state.

Yields each data file once, for ``lsm.fsck``. Public: ``walk``, ``repair``, ``Problem`` (problem).
"""
