"""Formats of data files beside Parquet: ORC and Avro.

Public: ``orc``, ``avro``.
"""
