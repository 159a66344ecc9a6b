"""Column types, and the values of columns.

Plain values stand for literals and bounds, Arrow arrays for rows. Public: ``ColumnType``, ``Kind``, ``Plain`` (column_type),
``to_scalar`` (plain_value), ``time_zone`` (time_zone), ``spark_order`` (float_order), ``Mask``, ``Int64s`` (arrays).
"""
