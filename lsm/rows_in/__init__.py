"""Rows from outside, on their way to the table.

The stages are arrow, check, conform and constrain. Every value stays unchanged, or is refused with its row and path. Knows Python, NumPy,
pandas and Arrow values and schemas, not files.
Public: ``arrow_rows``, ``python_scalar`` (arrow), ``check_rows`` (check), ``conform``, ``constrain``, ``RowPolicy`` (policy).
"""
