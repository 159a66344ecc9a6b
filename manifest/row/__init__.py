"""Paimon's BinaryRow: keys, partitions and bounds as bytes, one at a time and many at once.

Public: ``encode_row``, ``decode_row`` (binary_row), ``columns``, ``words``.
"""
