"""Forms of Arrow columns that travel: texts as dictionaries or views, row kinds, wide integers, equality of rows.

Knows no files. Public: ``TextForm`` (text_form), ``row_kind``, ``equality``.
"""
