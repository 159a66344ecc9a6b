"""Buckets of rows: bucket function, dynamic buckets, hash index.

Public: ``hash``, ``HashBucketAssigner`` (dynamic), ``hash_index``, ``KnownHashes`` (known_hashes), ``route`` (router).
"""
