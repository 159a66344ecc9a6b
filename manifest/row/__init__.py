"""Paimon's BinaryRow: keys, partitions and bounds as bytes.

For single rows and for many rows at once. Public: ``encode_row``, ``decode_row`` (binary_row), ``columns``, ``words``.
"""
