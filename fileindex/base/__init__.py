"""What every index needs and what all rooms speak: column types, plain values, array aliases, the base of all errors, redaction of secrets.

Knows neither indexes nor predicates. Public: ``ColumnType``, ``Kind``, ``Plain`` (column_type), ``to_scalar`` (plain_value),
``PaimonError`` (errors), ``public`` (public), ``gc_paused`` (process), ``logger_of`` (log), ``Mask``, ``Int64s`` (arrays).
"""
