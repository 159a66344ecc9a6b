"""Public API: ``Table``, ``Scan`` and ``Catalog``.

This package checks arguments and passes requests to a backend.
"""
