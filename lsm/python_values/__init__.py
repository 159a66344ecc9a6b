"""Conversion of Python values to Arrow columns.

Every value stays unchanged, or is refused with its row and path. Knows Python, NumPy and pandas scalars and Arrow types, not tables or files.
Public: ``python_column``, ``python_scalar`` (columns), ``InvalidValue`` (convert).
"""
