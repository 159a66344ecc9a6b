"""Predicates: the tree, its JSON form, and row evaluation.

Knows column types and Arrow arrays; not the language of a filter, nor the source of the rows. Public:
``Predicate`` and its nodes (tree), ``ValueSet`` (value_set), ``evaluate_rows``, ``unwiden``.
"""
