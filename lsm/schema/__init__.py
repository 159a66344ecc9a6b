"""Rows against schemas: input conformed to a table, old files cast to a new schema, the Parquet schema of a data file.

Public: ``conform`` (conform_input), ``lossless_cast``, ``validate_rows`` (validate_arrow), ``cast``, ``evolution``, ``parquet_schema``.
"""
