"""Parquet: footers, page indexes, pages and chunks read as little as a question needs; the writer.

Knows Arrow in and out; not tables. Two decoders (Arrow, polars) behind one seam. Public: ``reader``, ``ParquetFileWriter``
(writer), ``CachedFooter`` (footer).
"""
