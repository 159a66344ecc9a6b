"""The base of a table's roles: the backend that they call."""

from __future__ import annotations

from pyspark_paimon.request.arguments import CheckedMethods
from pyspark_paimon.request.backend import Backend


class TableRole(CheckedMethods):
    """One role of ``Table``. Roles do not know each other: ``Table`` is composed of them, and each could serve alone.

    Requests are strict models; what does not fit one leaves a public method as ``InvalidArgument`` that names method and argument.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend


__all__ = ["TableRole"]
