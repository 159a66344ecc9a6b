"""Table schemas: versions, changes, validation and evolution.

Evolution maps the columns of old files to new ones by field id. Public: ``TableSchema`` (table_schema), ``TableKind`` (table_kind), ``SchemaManager`` (manager),
``build_schema`` (validation), ``evolution``.
"""
