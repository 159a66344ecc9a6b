"""The rim: what many tables never need. Each folder is a plugin, found by name, and nothing outside of it imports it.

What the core asks of each kind of plugin (``paimon_base/plugins.py`` has their names):

- ``command``: ``main(arguments)`` runs the command line.
- ``session``: ``sql(spark, text, args, catalog)`` runs a statement that Spark does not pass to data sources.
- ``catalog``: a class; ``Catalog.create`` calls it with the options. The location of its tables is the scheme of the same name.
- ``file-format``: a module with ``open_file`` and ``create_file``, as the core's own for Parquet.
- ``scheme``: a class of file systems, called with ``StorageOptions``.
- ``metadata``: a module with ``publish_or_log`` after a commit, and ``list_files`` and ``needed_names`` for the removal of orphans.
- ``operation``: an operation of ``Table``.
- ``page``: what a notebook or a browser shows.

Public: none.
"""
