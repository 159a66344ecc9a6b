"""Parquet footers, page indexes, pages and column chunks.

Reads as few bytes as a query needs. Input and output are Arrow; this package does not know tables. Two decoders (Arrow, polars) have one interface.
Public: ``reader``, ``PageFooter`` (page_index), ``CachedFooter`` (footer).
"""
