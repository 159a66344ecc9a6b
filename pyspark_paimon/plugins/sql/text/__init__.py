"""Texts of statements: tokens, parameters, relations and pipelines.

Public: ``TokenCursor`` (words), ``with_parameters`` (parameters), ``relations``, ``pipelines``.
"""
