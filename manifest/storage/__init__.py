"""Which store a path is on, and object stores (S3, Azure, Google) behind the ``FileIO`` protocol: options, commits, faults, transfers.

Knows no format, no table. The client library is imported when the first path of a store is used. Public: ``file_io_for`` (resolve),
``ObjectStoreFileIO`` (object_store), ``StorageOptions`` (storage_options).
"""
