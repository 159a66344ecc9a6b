"""Asking the indexes of one data file: which rows may match, which are the best n.

An index is advice: whatever cannot be read means ``may match`` and is counted. Public: ``evaluate``, ``FileIndexes`` (reader),
``top_n``, ``summary``, ``metrics``.
"""
