"""Avro object containers as Paimon writes them: whole records for small files, columns for manifests.

Knows Avro and the record schemas; not what an entry means. Public: ``container``, ``columnar``, ``schemas``, ``wire``.
"""
