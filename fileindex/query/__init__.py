"""Queries of the file indexes of one data file.

They return the rows that may match, or the rows of a top-n. An index that cannot be read means ``may match``, and is counted.
Public: ``evaluate``, ``FileIndexes`` (reader), ``top_n``, ``summary``, ``metrics``.
"""
