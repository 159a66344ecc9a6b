"""Catalogs: names of databases, tables and views, and the directory of each.

Public: ``Catalog`` (catalog), ``AnyCatalog`` (catalog_base), ``DirectoryCatalog`` (directory_catalog), ``View`` (view).
"""
