"""Index construction for one data file while it is written.

Knows the options ``file-index.*`` and batches of rows, but not where the bytes are stored. Public: ``DataFileIndexWriter`` (writer),
``FileIndexOptions`` (options), ``size_advice``, ``unique_column_advice`` (advice).
"""
