"""Forms of Arrow columns.

Texts as dictionaries or views, row kinds, limits, input of the CSV reader. This package does not know files.
Public: ``TextForm`` (text_form), ``row_kind``.
"""
