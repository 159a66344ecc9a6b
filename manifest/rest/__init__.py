"""Client of a REST catalog: requests, snapshots, temporary keys.

Does not read rows or manifests. A ``FileIO`` reads a table's files. Public: ``RestOptions`` (options), ``RestApi`` (api),
``ServerSnapshots`` (server_snapshots), ``LentFileIO`` (lent_storage), ``ResourceMissing`` (errors).
"""
