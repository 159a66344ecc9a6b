"""What the rows of a table come to: counts, extremes and sums, from metadata and indexes as far as these tell, from rows where they do not.

Public: ``RowAggregation`` (aggregation), ``RowSummary``, ``can_aggregate`` (summary).
"""
