"""Forms of Arrow columns that travel: dictionaries and views of texts, row kinds, equality of rows.

Knows no files. Public: ``dictionary``, ``decode``, ``row_kind``, ``equality``.
"""
