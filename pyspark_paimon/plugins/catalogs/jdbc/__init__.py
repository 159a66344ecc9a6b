"""Rows of Paimon's JDBC catalog in a database.

Knows the catalog's tables, their keys, and the database's address; not where tables lie or what is in them. Names for others:
``JdbcOptions`` and ``CatalogRows``.
"""
