"""Statistics of columns, partitions and whole tables.

Public: ``SimpleStats``, ``may_match`` (column_stats), ``collector``, ``StatisticsFile`` (table_stats).
"""
