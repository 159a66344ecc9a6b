"""Paimon's data types, their text and DDL, casts, default values.

Public: ``DataType``, ``DataField`` (data_type), ``type_parser``.
"""
