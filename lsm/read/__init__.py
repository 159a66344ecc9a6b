"""Reads of data files and splits.

Indexes and filters select rows, deletion vectors remove some, runs are merged, and remaining conditions are checked on rows.
Lookups find the rows of keys in cached key pages. Public: ``read_split`` (split), ``data_file``, ``KeyedRead`` (keyed_read), ``top_n``,
``ReadReport`` (metrics).
"""
