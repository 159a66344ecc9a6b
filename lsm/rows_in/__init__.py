"""Rows from outside, on their way to the table: conversion to Arrow, checks, the types of the schema.

Every value stays unchanged, or is refused with its row and path. Knows Python, NumPy, pandas and Arrow values and schemas, not files.
Public: ``arrow_rows``, ``python_scalar`` (arrow), ``validate_rows`` (check), ``conform``, ``lossless_cast``.
"""
