"""Storage access: ``FileIO``, paths, file cache and errors.

Knows no file format. Public: ``FileIO``, ``LocalFileIO`` (file_io), ``WrappedFileIO`` (wrapped), ``TablePaths`` (paths), the errors.
"""
