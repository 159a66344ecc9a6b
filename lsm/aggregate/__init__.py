"""Aggregates of table rows: counts, extremes and sums.

Computed from metadata and indexes if possible, otherwise from rows. Public: ``RowAggregation`` (aggregation), ``RowSummary``,
``can_aggregate`` (summary).
"""
