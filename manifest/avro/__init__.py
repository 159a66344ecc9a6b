"""Avro object containers: records of small files, columns of manifests.

Knows Avro and the record schemas, not the meaning of entries. Public: ``container``, ``columnar``, ``schemas``, ``wire``.
"""
