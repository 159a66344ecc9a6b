"""The indexes of data files where they are kept: embedded or beside the file, and rewritten for old files.

Public: ``locate``, ``rewrite``.
"""
