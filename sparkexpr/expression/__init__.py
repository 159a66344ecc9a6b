"""Computed expressions of filters, evaluated on Arrow arrays.

For example ``lower(city)``, ``a + b``, CASE. Types follow Spark. A function that Arrow cannot compute exactly as Spark is rejected.
Knows column types and Arrow arrays; not predicates, nor the source of the arrays.

Public: ``Expression`` and its nodes (tree), ``call``, ``cast_to`` (functions), ``compute`` (compute),
``expression_to_json``, ``expression_from_json`` (json).
"""
