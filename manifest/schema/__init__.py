"""Table schemas: their versions on storage, changes, validation, and how the columns of old files map to new ones by field id.

Public: ``TableSchema`` (table_schema), ``SchemaManager`` (manager), ``build_schema`` (validation), ``evolution``.
"""
