"""Paimon's data types: their text, their DDL, which casts are allowed, default values.

Public: ``DataType``, ``DataField`` (data_type), ``type_parser``.
"""
