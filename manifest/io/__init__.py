"""Where bytes are: the ``FileIO`` protocol, paths and names, the cache of what never changes, errors.

Knows no format. Public: ``FileIO``, ``LocalFileIO`` (file_io), ``WrappedFileIO`` (wrapped), ``TablePaths`` (paths), the errors.
"""
