"""Translation of filter languages to bound predicates.

SQL text, Spark columns and pyarrow expressions become one tree (``ast``), which ``bind`` resolves against a schema.
This package knows schemas, not files. Public: ``parse``, ``bind``.
"""
