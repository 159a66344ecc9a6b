"""Base class of the parts of ``Table``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from manifest.options.core_options import option_texts
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import CheckedMethods


class TableRole(CheckedMethods):
    """Base of the mixins that ``Table`` is composed of.

    The mixins do not depend on each other. Requests are strict models: a value that a request does not accept leaves a public method
    as ``InvalidArgument`` with the names of method and argument.
    """

    def __init__(self, engine: Engine) -> None:
        if isinstance(engine, str | os.PathLike):
            raise InvalidArgument(
                f"Table({str(engine)!r}) is not a way to open a table; use Table.open(path), or Table.create(path, schema)"
            )
        self._engine = engine

    if not TYPE_CHECKING:  # type checkers report unknown names by themselves

        def __getattr__(self, name: str) -> Any:
            from pyspark_paimon.table.other_names import missing_text  # noqa: PLC0415  # seldom needed

            raise AttributeError(missing_text(type(self), name), name=name, obj=self)

        def __bool__(self) -> bool:
            return True  # not the number of rows

        def __len__(self) -> int:
            raise TypeError("Table has no len(); use table.count()")

        def __getitem__(self, item: object) -> Any:
            raise TypeError(f"Table has no rows or columns by [{item!r}]; use table.scan(filter, columns=[...]) or table.lookup(keys)")

    @property
    def path(self) -> str:
        """Directory or URI of the table.

        >>> from pyspark_paimon.example import cities
        >>> cities().path
        '...cities'
        """
        return self._engine.path

    @property
    def table_schema(self) -> TableSchema:
        """Newest schema, with Paimon's types, keys and options.

        >>> from pyspark_paimon.example import cities
        >>> cities().table_schema.primary_keys
        ('id',)
        """
        return self._engine.ask(SchemaOf())

    def _write_options(self, options: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Return the options of a write with the session's options.

        Options of the call take precedence over options of the Spark session.
        """
        settings = self._session_options()
        if not settings:
            return options
        from pyspark_paimon.request.scan_mode import without_place  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.spark.wire.session_settings import check_settings  # noqa: PLC0415  # as above

        settings = without_place(settings)
        check_settings(settings)
        return {**settings, **option_texts(options)}

    def _read_options(self, options: Mapping[str, str] | None, *, placed: bool) -> Mapping[str, str] | None:
        """Return the options of a read with the session's options.

        placed: Whether arguments give the position of the scan. Session options for the position are ignored then.
        """
        settings = self._session_options()
        if not settings:
            return options
        from pyspark_paimon.request.scan_mode import has_place, without_place  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.spark.wire.session_settings import check_settings  # noqa: PLC0415  # as above

        settings = {key: value for key, value in settings.items() if not key.startswith("write.")}
        check_settings(without_place(settings))
        if placed or has_place(option_texts(options)):
            settings = without_place(settings)
        return {**settings, **option_texts(options)}

    def _session_options(self) -> dict[str, str]:
        spark = self._engine.spark
        if spark is None:
            return {}
        from pyspark_paimon.spark.wire.session_settings import settings_of  # noqa: PLC0415  # see test_imports

        return settings_of(spark, self._engine.path)
