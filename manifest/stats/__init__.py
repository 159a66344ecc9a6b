"""Statistics of columns, partitions and whole tables, as metadata carries them.

Public: ``SimpleStats``, ``may_match`` (column_stats), ``collector``, ``StatisticsFile`` (table_stats).
"""
