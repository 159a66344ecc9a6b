"""Python values as Arrow columns: every value arrives unchanged, nested ones too, or is refused by row and path.

Knows Python, NumPy and pandas scalars and Arrow types; not tables, not files. Public: ``python_column``, ``python_scalar`` (columns),
``InvalidValue`` (convert).
"""
