"""Expressions: what a filter computes from columns (``lower(city)``, ``a + b``, CASE), typed as Spark types them, evaluated on Arrow arrays.

A call is refused by name where Arrow cannot compute exactly what Spark does. Knows column types and Arrow arrays; not predicates,
nor where the arrays come from. Public: ``Expression`` and its nodes (tree), ``call``, ``cast_to`` (functions), ``computed`` (compute),
``expression_to_json``, ``expression_from_json`` (json).
"""
