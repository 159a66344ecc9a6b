"""Buckets of rows: bucket function, dynamic buckets, hash index.

Public: ``hash``, ``HashBucketAssigner``, ``KnownHashes`` (dynamic), ``route`` (router).
"""
