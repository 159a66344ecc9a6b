"""Order-preserving keys: columns as 64-bit words, packed and sorted; ORDER BY.

Knows Arrow columns and sort order; not files, not merge engines. Public: ``encoding``, ``SortKey`` (sort), ``packed``,
``KeySet`` (key_set), ``order_by``.
"""
