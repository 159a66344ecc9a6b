"""From a row to its bucket: the bucket function, dynamic buckets and their hash index.

Public: ``hash``, ``HashBucketAssigner`` (dynamic), ``hash_index``, ``KnownHashes`` (known_hashes), ``route`` (router).
"""
