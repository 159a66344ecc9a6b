"""The base of a table's roles: the backend that they call."""

from __future__ import annotations

from collections.abc import Mapping

from manifest.options.core_options import option_texts
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.request.arguments import CheckedMethods
from pyspark_paimon.request.executor import Backend
from pyspark_paimon.request.state import SchemaOf


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
        return self._backend.ask(SchemaOf())

    def _write_options(self, given: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """The options of a call that changes the table, with those that the session is set to; the call's win."""
        settings = self._session_options()
        if not settings:
            return given
        from pyspark_paimon.request.scan_mode import without_place  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.spark.wire.session_settings import check_settings  # noqa: PLC0415  # as above

        settings = without_place(settings)
        check_settings(settings)
        return {**settings, **option_texts(given)}

    def _read_options(self, given: Mapping[str, str] | None, *, placed: bool) -> Mapping[str, str] | None:
        """The options of a read, as ``_write_options``; ``placed``: its arguments say which state to read."""
        settings = self._session_options()
        if not settings:
            return given
        from pyspark_paimon.request.scan_mode import has_place, without_place  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.spark.wire.session_settings import check_settings  # noqa: PLC0415  # as above

        settings = {key: value for key, value in settings.items() if not key.startswith("write.")}
        check_settings(without_place(settings))
        if placed or has_place(option_texts(given)):
            settings = without_place(settings)
        return {**settings, **option_texts(given)}

    def _session_options(self) -> dict[str, str]:
        spark = self._backend.spark
        if spark is None:
            return {}
        from pyspark_paimon.spark.wire.session_settings import settings_of  # noqa: PLC0415  # see test_imports

        return settings_of(spark, self._backend.path)


__all__ = ["TableRole"]
