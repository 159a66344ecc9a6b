"""Table check of data files, against metadata, statistics and indexes.

Public: ``check_file``.
"""
