"""The rows' part of a table check: one data file against its metadata, keys, statistics and indexes.

Public: ``check_file``.
"""
