"""System tables with Paimon's names, columns and types.

They show metadata, or other views of the rows, and are scanned like any table. This package does not know data files, Spark or
filter languages.
Public: ``local_engine`` (opened), ``SystemTable`` (engine), ``METADATA`` (registry).
"""
