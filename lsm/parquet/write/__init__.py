"""Parquet encoder: Arrow tables to a data file.

Chooses encoding and compression of each column. Knows Arrow schemas and Parquet settings, not tables or levels.
Public: ``ParquetFileWriter`` (writer), ``ColumnLayout`` (column_layout).
"""
