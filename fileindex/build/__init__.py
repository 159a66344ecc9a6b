"""Building the indexes of one data file while it is written.

Knows the options ``file-index.*`` and batches of rows; not where the bytes are kept. Public: ``DataFileIndexWriter`` (writer),
``FileIndexOptions`` (options), ``costly``, ``unwise`` (advice).
"""
