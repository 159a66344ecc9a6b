"""Avro data files: blocks by position, decoded in columns, and encoded in columns.

Knows Arrow in and out; not tables. The containers of manifests are ``manifest.avro``'s. Public: ``AvroDataFile`` (reader),
``AvroBlocks`` (blocks).
"""
