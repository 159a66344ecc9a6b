"""Shared types, errors and helpers of all packages.

Knows neither indexes nor predicates. Public: ``ColumnType``, ``Kind``, ``Plain`` (column_type), ``to_scalar`` (plain_value),
``PaimonError`` (errors), ``public`` (public), ``gc_paused`` (process), ``logger_of`` (log), ``Mask``, ``Int64s`` (arrays).
"""
