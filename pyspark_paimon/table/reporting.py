"""Methods of ``Table`` that report the LSM tree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from manifest.io.storage_errors import storage_errors
from paimon_base.errors import InvalidArgument
from paimon_base.plugins import plugin
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.request.state import Start
from pyspark_paimon.request.validate import travel_of
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.typing import Filter, Time

if TYPE_CHECKING:
    from pyspark_paimon.results.tree_report import TreeReport


class TableReporting(TableRole):
    """Methods that report the LSM tree of the table.

    >>> from pyspark_paimon.example import cities
    >>> [(bucket.name, bucket.files, bucket.rows) for bucket in cities().tree().buckets]
    [('bucket 0', 1, 3)]
    """

    def tree(
        self,
        filter: Filter = None,  # noqa: A002  # Arrow's and pandas' word
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: Time | None = None,
    ) -> TreeReport:
        """Return a report of the LSM tree.

        The report has

        - the files of each bucket by level and key range, and which of them ``filter`` keeps,
        - the changes of each snapshot, with write and space amplification,
        - the health of the indexes, and advice.

        Metadata and indexes are read, but no rows. If there are very many files, neighbours are combined in one entry.

        Args:
            filter: As for ``scan``.
            snapshot: As for ``scan``.
            tag: As for ``scan``.
            timestamp: As for ``scan``.

        Raises:
            InvalidFilter, UnknownColumn, InvalidArgument: An argument is not valid.
            SnapshotNotFound, SnapshotExpired: There is no such snapshot or tag.

        >>> from pyspark_paimon.example import cities
        >>> report = cities().tree("id = 99")
        >>> report.total("files"), report.total("kept"), report.most_runs
        (1, 0, 1)
        """
        from pyspark_paimon.request.scan_questions import DescribeTree  # noqa: PLC0415  # see test_imports

        pinned, schema = self._engine.ask(Start(travel=travel_of(snapshot, tag, timestamp)))
        request = ScanRequest.of(bind_filter(filter, schema.column_types), columns=schema.names, snapshot=pinned).model_copy(
            update={"schema_id": schema.id}
        )
        return self._engine.ask(DescribeTree(request=request)).model_copy(update={"filter_text": None if filter is None else str(filter)})

    def report(
        self,
        file: str | os.PathLike[str],
        filter: Filter = None,  # noqa: A002  # as above
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: Time | None = None,
    ) -> Path:
        """Write the report of ``tree`` as one HTML page.

        The page needs no other files. The method returns its path.

        Args:
            file: Path of the page.
            filter: As for ``scan``.
            snapshot: As for ``scan``.
            tag: As for ``scan``.
            timestamp: As for ``scan``.

        Raises:
            StorageError: ``file`` cannot be written.
            InvalidFilter, UnknownColumn, InvalidArgument, SnapshotNotFound, SnapshotExpired: As for ``tree``.

        >>> import tempfile
        >>> from pyspark_paimon.example import cities
        >>> page = cities().report(f"{tempfile.mkdtemp()}/cities.html", "city = 'Oslo'")
        >>> "1 of 1 file" in page.read_text()
        True
        """
        if "\0" in os.fspath(file):
            raise InvalidArgument(f"report: {os.fspath(file)!r} is not a valid file name")
        text: str = plugin("page", "report")(self.tree(filter, snapshot=snapshot, tag=tag, timestamp=timestamp))
        target = Path(file).expanduser().resolve()
        with storage_errors(str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return target
