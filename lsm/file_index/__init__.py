"""File indexes of data files, embedded or in side files.

Also rewrites them for existing files. Public: ``locate``, ``rewrite``.
"""
