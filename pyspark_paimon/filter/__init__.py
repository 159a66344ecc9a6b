"""Filter languages: SQL text, Spark columns and pyarrow expressions become one tree, then a bound predicate.

Knows schemas; not files. Public: ``parse``, ``bind``.
"""
