"""Spark's data source: its name, its two entrances (schema questions and readers or writers), and how it reaches a server.

Public: ``PaimonDataSource`` (source), ``install``.
"""
