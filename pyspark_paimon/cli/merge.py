"""The command ``merge``: rows of files are inserted, update or delete, by whether the table has their key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import typer

from fileindex.base.errors import InvalidArgument
from lsm.arrow.row_kind import ROW_KIND
from pyspark_paimon.cli.rows_of_files import STANDARD_INPUT, rows_of_files
from pyspark_paimon.cli.scan import column_names
from pyspark_paimon.cli.target import TableOption, destroys
from pyspark_paimon.cli.write import CommitName, Files, InputFormat
from pyspark_paimon.table.table import Table

_MATCHED, _NOT_MATCHED = ("update", "delete", "ignore"), ("insert", "ignore")
_PLACE = "_place"


@destroys
def merge_files(
    target: TableOption,
    files: Files,
    *,
    on: Annotated[str | None, typer.Option("--on", help="The primary key, which it is by; columns separated by commas.")] = None,
    when_matched: Annotated[
        str, typer.Option("--when-matched", help=f"{', '.join(_MATCHED)}: what a row does whose key is there.")
    ] = "update",
    when_not_matched: Annotated[
        str, typer.Option("--when-not-matched", help=f"{', '.join(_NOT_MATCHED)}: what a row does whose key is not there.")
    ] = "insert",
    form: InputFormat = None,
    commit_id: CommitName = None,
) -> None:
    """Merge the rows of files into a primary-key table by its key, in one commit.

    Of rows with one key the last counts. What updates is merged by the table's merge engine. Keys are looked up in the snapshot that was
    newest at the start: what others commit meanwhile is not seen, and the answer tells of it. Deleting asks first.
    """
    table = target.open()
    _check(table, on, when_matched, when_not_matched)
    matching = Matching(table, when_matched, when_not_matched)
    if STANDARD_INPUT in files and when_matched == "delete" and not (target.yes or target.dry_run):
        raise InvalidArgument("standard input has the rows, so nobody can be asked: add --yes, or --dry-run")
    rows = rows_of_files(files, form, table.schema)
    asks = when_matched == "delete" and not target.dry_run
    if target.dry_run or (asks and not target.confirmed(f"delete the rows of {table.path} whose keys the files have")):
        for batch in rows:
            matching.chosen(batch)
        target.tell({"dry_run": target.dry_run, **matching.counts()}, f"nothing merged: {matching.told()}")
        return
    done = table.write(matching.changes(rows), commit_id=commit_id)
    others = (
        0 if done.snapshot_id is None or done.replayed or not matching.looked_up else done.snapshot_id - 1 - (matching.snapshot_id or 0)
    )
    text = (
        f"{done.rows:,} rows written: {matching.told()}, snapshot {done.snapshot_id}"
        if done.snapshot_id is not None
        else f"nothing to commit: {matching.told()}"
    )
    late = f"; {others} snapshots came meanwhile, whose keys were not looked up" if others > 0 else ""
    target.tell({**done.model_dump(mode="json"), **matching.counts(), "snapshots_meanwhile": others}, text + late)


@dataclass
class Matching:
    """Which rows have a key that the table has, in one snapshot, and what they do."""

    table: Table
    when_matched: str
    when_not_matched: str
    matched: int = 0
    not_matched: int = 0
    looked_up: bool = False

    def __post_init__(self) -> None:
        self.snapshot_id = self.table.scan().snapshot_id

    @property
    def looks_up(self) -> bool:
        """Whether rows differ in what they do: an upsert needs no look."""
        return (self.when_matched, self.when_not_matched) != ("update", "insert")

    def changes(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """What is to be written of ``rows``, each with its kind."""
        kinds = pa.field(ROW_KIND, pa.string())
        if not self.looks_up:
            return rows
        if ROW_KIND in rows.schema.names:
            raise InvalidArgument(f"merge gives rows their kinds; the files have the column '{ROW_KIND}' already: write them")

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in rows:
                there, chosen = self.chosen(batch)
                kind = pc.if_else(there, "-D" if self.when_matched == "delete" else "+U", "+I")
                yield batch.append_column(kinds, kind).filter(chosen)

        return pa.RecordBatchReader.from_batches(rows.schema.append(kinds), batches())

    def chosen(self, batch: pa.RecordBatch) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        """Which rows' keys are there, and which rows do something."""
        self.looked_up = True
        keys = list(self.table.primary_keys)
        if missing := [name for name in keys if name not in batch.schema.names]:
            raise InvalidArgument(f"the files have no column '{missing[0]}', which the primary key has")
        asked = pa.Table.from_batches([batch.select(keys)])
        found = self.table.lookup(asked, columns=keys, snapshot=self.snapshot_id)
        there = _membership(asked.cast(found.schema), found)
        matched = there.true_count
        self.matched += matched
        self.not_matched += len(there) - matched
        kept_not, kept = pa.scalar(self.when_not_matched != "ignore"), pa.scalar(self.when_matched != "ignore")
        return there, pc.if_else(there, kept, kept_not)

    def counts(self) -> dict[str, object]:
        """For programs."""
        return (
            {"matched": None, "not_matched": None, "looked_up_in": None}
            if not self.looked_up
            else {"matched": self.matched, "not_matched": self.not_matched, "looked_up_in": self.snapshot_id}
        )

    def told(self) -> str:
        """For people."""
        if not self.looked_up:
            return "rows updated or inserted by their keys"
        return f"{self.matched:,} rows matched ({self.when_matched}), {self.not_matched:,} did not ({self.when_not_matched})"


def _membership(asked: pa.Table, found: pa.Table) -> pa.BooleanArray:
    """For each row of ``asked`` whether ``found``, which has rows of it in its order, has it."""
    placed = asked.append_column(_PLACE, pa.array(range(len(asked)), pa.int64()))
    places = placed.join(found, keys=found.column_names, join_type="left semi")[_PLACE]
    return pc.is_in(placed[_PLACE].combine_chunks(), value_set=places.combine_chunks())


def _check(table: Table, on: str | None, when_matched: str, when_not_matched: str) -> None:
    if not table.primary_keys:
        raise InvalidArgument(f"{table.path} has no primary key, and merge goes by one: use delete and write")
    if on is not None and set(column_names(on) or ()) != set(table.primary_keys):
        raise InvalidArgument(f"merge goes by the primary key, --on {','.join(table.primary_keys)}, not {on}")
    for option, given, allowed in (
        ("--when-matched", when_matched, _MATCHED),
        ("--when-not-matched", when_not_matched, _NOT_MATCHED),
    ):
        if given not in allowed:
            raise InvalidArgument(f"{option} takes {', '.join(allowed)}, not '{given}'")
    if (when_matched, when_not_matched) == ("ignore", "ignore"):
        raise InvalidArgument("nothing would be done: both kinds of rows are ignored")


__all__ = ["Matching", "merge_files"]
