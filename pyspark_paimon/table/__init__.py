"""The face: ``Table``, ``Scan``, ``Catalog``.

Checks arguments and hands requests to a backend; does no work itself. Public: ``Table`` (table), ``Scan`` (scan), ``Catalog``
(catalog).
"""
