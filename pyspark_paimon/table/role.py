"""The base of a table's roles: the backend that they call."""

from __future__ import annotations

from manifest.schema.table_schema import TableSchema
from pyspark_paimon.request.arguments import CheckedMethods
from pyspark_paimon.request.backend import Backend


class TableRole(CheckedMethods):
    """One role of ``Table``. Roles do not know each other: ``Table`` is composed of them, and each could serve alone.

    Requests are strict models; what does not fit one leaves a public method as ``InvalidArgument`` that names method and argument.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def path(self) -> str:
        """Where the table is."""
        return self._backend.path

    @property
    def table_schema(self) -> TableSchema:
        """The newest schema of record: Paimon's types, keys, options."""
        return self._backend.schema()


__all__ = ["TableRole"]
