"""Forms of Arrow columns.

Texts as dictionaries or views, other types at the leaves, pieces below 2 GiB, row kinds, limits, input of the CSV reader. This package
does not know files.
Public: ``TextForm`` (text_form), ``with_leaves`` (leaf_types), ``in_pieces`` (pieces), ``row_kind``.
"""
