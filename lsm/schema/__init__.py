"""Rows and schemas.

Input is conformed to a table, old files are cast to a new schema, and data files get a Parquet schema.
Public: ``conform`` (conform_input), ``lossless_cast``, ``validate_rows`` (validate_arrow), ``cast``, ``evolution``, ``parquet_schema``.
"""
