"""Results of an operation on many tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field

from paimon_base.public import public
from paimon_base.texts import count_text, list_text
from pyspark_paimon.results.message import Message, Result

if TYPE_CHECKING:
    import pyarrow as pa

Status: TypeAlias = Literal["ok", "problems", "failed"]
"""``problems``: the operation ended, and found problems or steps that failed. ``failed``: it did not end."""


@public
class TableOutcome(Message):
    """What an operation did with one table of many.

    ``table``: name in the catalog, or a database whose tables cannot be listed. ``text``: the result or the error in one line.
    ``figures``: numbers of the result by name, for monitoring.

    >>> str(TableOutcome(table="shop.orders", status="ok", text="clean", seconds=0.25))
    'ok       shop.orders 0.2 s: clean'
    """

    table: str
    status: Status
    text: str
    seconds: float
    figures: dict[str, float] = Field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.status:8} {self.table} {self.seconds:.1f} s: {self.text}"


@public
class TablesResult(Result):
    """Outcomes of an operation on many tables, by name.

    ``seconds``: duration of all. ``ended_millis``: time of the end.
    """

    operation: str
    tables: tuple[TableOutcome, ...]
    seconds: float = 0.0
    ended_millis: int = 0

    def __str__(self) -> str:
        """Return the number of tables by status.

        >>> one = TableOutcome(table="a.b", status="failed", text="", seconds=1)
        >>> print(TablesResult(operation="fsck", tables=(one,), seconds=1.5))
        fsck of 1 table in 1.5 s: 1 failed
        """
        counts = Counter[str](outcome.status for outcome in self.tables)
        by_status = {"ok": "ok", "problems": "with problems", "failed": "failed"}
        counted = list_text(*(f"{counts[status]:,} {text}" for status, text in by_status.items() if counts[status]))
        return f"{self.operation} of {count_text(len(self.tables), 'table')} in {self.seconds:.1f} s: {counted or 'nothing to do'}"

    @property
    def clean(self) -> bool:
        """Whether every table is ok."""
        return all(outcome.status == "ok" for outcome in self.tables)

    def to_arrow(self) -> pa.Table:
        """Return a row for each table, with its figures as a map."""
        import pyarrow as pa  # noqa: PLC0415  # decoding a result does not need pyarrow

        columns = [("table", pa.string()), ("status", pa.string()), ("text", pa.string()), ("seconds", pa.float64())]
        schema = pa.schema([*columns, ("figures", pa.map_(pa.string(), pa.float64()))])
        rows = [{**outcome.model_dump(), "figures": list(outcome.figures.items())} for outcome in self.tables]
        return pa.Table.from_pylist(rows, schema)

    def to_prometheus(self) -> str:
        r"""Return the outcomes in Prometheus' text format, for a collector of text files.

        ``paimon_table_ok`` is 1 or 0. ``paimon_run_timestamp_seconds`` tells that the operation ran at all.

        >>> one = TableOutcome(table="a.b", status="ok", text="", seconds=1, figures={"problems": 0})
        >>> print(TablesResult(operation="fsck", tables=(one,), ended_millis=5000).to_prometheus().splitlines()[1])
        paimon_table_ok{operation="fsck",table="a.b"} 1
        """
        samples: dict[str, list[str]] = {}
        for outcome in self.tables:
            values = {"ok": float(outcome.status == "ok"), "seconds": outcome.seconds, **outcome.figures}
            for name, value in values.items():
                labels = f'operation="{self.operation}",table="{_label(outcome.table)}"'
                samples.setdefault(f"paimon_table_{name}", []).append(f"{{{labels}}} {value:.15g}")
        samples["paimon_run_timestamp_seconds"] = [f'{{operation="{self.operation}"}} {self.ended_millis / 1000:.15g}']
        lines = [line for name, values in samples.items() for line in (f"# TYPE {name} gauge", *(f"{name}{value}" for value in values))]
        return "".join(f"{line}\n" for line in lines)


def _label(text: str) -> str:
    """Escape the value of a label."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
