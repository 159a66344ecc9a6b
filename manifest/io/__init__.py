"""Where bytes are: the ``FileIO`` protocol, paths and names, the directories a server allows, the cache of what never changes, errors.

Knows no format. Public: ``FileIO``, ``LocalFileIO`` (file_io), ``file_io_for`` (resolve), ``TablePaths`` (paths), the errors.
"""
