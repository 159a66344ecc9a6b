"""Parquet: footers, page indexes, pages and chunks read as little as a question needs.

Knows Arrow in and out; not tables. Two decoders (Arrow, polars) behind one seam. Public: ``reader``, ``PageFooter``
(page_index), ``CachedFooter`` (footer).
"""
