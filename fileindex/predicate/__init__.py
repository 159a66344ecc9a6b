"""Predicates: a frozen tree of comparisons on columns and map entries, its JSON form, and its exact answer for a batch of rows.

Knows column types and Arrow arrays; not which language a filter was written in, nor where the rows come from. Public:
``Predicate`` and its nodes (tree), ``ValueSet`` (value_set), ``evaluate_rows``, ``unwiden``.
"""
