"""The bytes of indexes, one module a kind: bloom filter, bitmap, bit-sliced index, range bitmap, and the container that holds them.

Knows how to write them and how to ask them; not which columns a table indexes. Public: ``registry``, ``container``.
"""
