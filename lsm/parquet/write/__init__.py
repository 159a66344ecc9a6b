"""The Parquet encoder: Arrow tables in, a data file out; how each column is encoded and compressed.

Knows Arrow schemas and Parquet's settings; not tables, not levels. Public: ``ParquetFileWriter`` (writer), ``ColumnLayout``
(column_layout).
"""
