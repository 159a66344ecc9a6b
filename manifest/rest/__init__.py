"""A REST catalog as its client sees it: connections, requests and answers, who makes snapshots there, keys of storage that it lends.

Knows no rows and no manifests: a table's files are reached by a ``FileIO`` as ever. Public: ``RestOptions`` (options), ``RestApi`` (api),
``ServerSnapshots`` (server_snapshots), ``LentFileIO`` (lent_storage), ``ResourceMissing`` (errors).
"""
