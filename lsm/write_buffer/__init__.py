"""Buffered rows of a write.

Input tables are held by row number. Rows are sorted and merged when a bucket is flushed. Public: ``SortBuffer`` (sort_buffer), ``Source`` (source).
"""
