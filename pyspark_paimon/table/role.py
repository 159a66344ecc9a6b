"""What the roles of a table share: the backend that carries out what they are asked."""

from __future__ import annotations

from pyspark_paimon.request.backend import Backend


class TableRole:
    """One role of ``Table``. Roles do not know each other: ``Table`` is composed of them, and each could serve alone."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend


__all__ = ["TableRole"]
