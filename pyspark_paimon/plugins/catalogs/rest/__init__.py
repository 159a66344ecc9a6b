"""Client of a REST catalog: requests, snapshots, temporary keys.

Does not read rows or manifests. A ``FileIO`` reads a table's files. Public: ``RestOptions`` (options), ``RestApi`` (api),
``ServerSnapshots`` (server_snapshots), ``VendedFileIO`` (vended_credentials).
"""
