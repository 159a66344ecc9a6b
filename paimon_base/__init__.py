"""Errors, thresholds and the process, for all packages of Paimon tables.

Public: ``PaimonError`` (errors), ``thresholds`` (thresholds), ``LazyModule`` (lazy), ``gc_paused`` (process), ``logger_of`` (log),
``public`` (public), ``check_siblings`` (siblings).
"""
