"""The rim: what many tables never need. Each folder is a plugin, found by name, and nothing outside of it imports it.

What the core asks of each kind of plugin (``paimon_base/plugins.py`` has their names):

- ``command``: ``main(arguments)`` runs the command line.
- ``statement``: ``sql(spark, text, args, catalog)`` runs a statement that Spark does not pass to data sources.
- ``catalog``: called by ``Catalog.create`` with the options, returns the catalog.
- ``location``: called with the location of a table that is no path (``rest://...``), returns its engine.
- ``file-format``: a module with ``open_file`` and ``create_file``, as the core's own for Parquet.
- ``scheme``: a class of file systems, called with ``StorageOptions``.
- ``after-commit``: called with the store after each commit of a table that asks for it. It never raises.
- ``orphans``: a module whose ``list_files`` and ``needed_names`` tell the removal of orphans which files are the plugin's.
- ``request``: an operation or a question of ``Table``, or a function that runs some.
- ``page``: what a notebook or a browser shows.
"""
