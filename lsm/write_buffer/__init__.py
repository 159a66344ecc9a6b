"""Rows on their way to a file: input tables held by row number, sorted and folded when a bucket is flushed.

Public: ``SortBuffer`` (sort_buffer), ``Source`` (source).
"""
