"""Rows from outside, on their way to the table: conversion to Arrow, checks, the types of the schema.

Every value stays unchanged, or is refused with its row and path. Knows Python, NumPy, pandas and Arrow values and schemas, not files.
Public: ``python_column``, ``python_scalar`` (python_column), ``validate_rows`` (check), ``conform``, ``lossless_cast``.
"""
