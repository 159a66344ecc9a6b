"""A column as an index sees it: values as fixed-width keys, hashed, grouped, sorted.

Knows Arrow arrays and the order of keys; not the bytes of any index. Public: ``to_keys`` (fixed), ``group_rows`` (group_by),
``hashing``.
"""
