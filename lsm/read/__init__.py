"""Reads of data files and splits.

Indexes and filters select rows, deletion vectors remove some, runs are merged, and remaining conditions are checked on rows.
Public: ``read_split`` (split), ``data_file``, ``top_n``, ``ReadReport`` (metrics).
"""
