"""Order-preserving keys: columns as 64-bit words, packed and sorted.

Also ORDER BY. This package knows Arrow columns and sort orders, not files or merge engines. Public: ``encoding``, ``SortKey`` (sort), ``KeySet`` (key_set),
``SortedKeys`` (sorted_keys), ``order_by``.
"""
