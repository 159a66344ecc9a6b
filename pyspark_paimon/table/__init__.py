"""The public API on tables and scans.

This package checks arguments and passes requests to an engine; it does no work itself. Public: ``Table`` (table), ``Scan`` (scan).
"""
