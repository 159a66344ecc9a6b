"""Catalogs beside that of directories: REST, Hive and JDBC.

Public: ``RegisteredCatalog`` (registered).
"""
