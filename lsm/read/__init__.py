"""Reading data files and splits: index and filter select rows, vectors take some away, runs are merged, the rest is filtered exactly.

Public: ``read_split`` (split), ``data_file``, ``top_n``, ``ReadReport`` (metrics).
"""
