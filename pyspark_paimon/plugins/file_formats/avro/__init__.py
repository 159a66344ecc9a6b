"""Avro data files: blocks decoded and encoded by column.

Input and output are Arrow; this package does not know tables. ``manifest.avro`` has the containers of manifests.
Public: ``AvroDataFile`` (reader), ``AvroBlocks`` (blocks).
"""
