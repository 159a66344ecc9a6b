"""Columns as index keys: converted, hashed, grouped and sorted.

Knows Arrow arrays and the order of keys, not the bytes of any index. Public: ``to_keys`` (fixed), ``group_rows`` (group_by), ``modified_utf``,
``hashing``.
"""
