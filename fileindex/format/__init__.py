"""Binary formats of indexes.

One module per kind: bloom filter, bitmap, bit-sliced index, range bitmap, and the container that holds them.
Knows how to write and query them, not which columns a table indexes. Public: ``registry``, ``container``.
"""
