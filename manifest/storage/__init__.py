"""Storage of a path, and object stores (S3, Azure, Google).

Object stores and HDFS implement ``FileIO`` on one base, ``RemoteFileIO`` (remote). Knows no file format and no table. The client library is imported with the first path of a store.
Public: ``file_io_for`` (resolve), ``ObjectStoreFileIO`` (object_store), ``StorageOptions`` (storage_options).
"""
