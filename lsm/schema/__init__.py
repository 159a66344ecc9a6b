"""Rows and schemas.

Old files are cast to a new schema, type changes are judged by stored values, and data files get a Parquet schema.
Public: ``cast``, ``evolution``, ``nested_parts``, ``RetypeCount`` (retype), ``parquet_schema``.
"""
