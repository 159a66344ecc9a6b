"""Tables of every merge engine, written in random flushes with random spills and compactions, hold what the model holds."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lsm.keys.sort import DELETE, UPDATE_BEFORE
from lsm.merge.function import merge_function_for
from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from lsm.write.table_write import TableWrite
from manifest.io.file_io import LocalFileIO
from manifest.schema.manager import SchemaManager
from manifest.schema.validation import build_schema
from manifest.store import FileStore
from paimon_base.thresholds import use_thresholds
from tests.examples import some
from tests.lsm.aggregate_model import CannotMerge, order_of
from tests.lsm.merge_kit import KINDS, shown
from tests.lsm.merge_model import Model, Record
from tests.lsm.write_kit import commit, compact_all

NUMBERS, TEXTS = st.none() | st.integers(-3, 3), st.none() | st.sampled_from(["", "a", "a\0", "\0", "b", "a,c"])
COLUMNS: dict[str, Any] = {"n": NUMBERS, "m": NUMBERS, "o": NUMBERS, "t": TEXTS, "a": st.none() | st.lists(st.integers(0, 3), max_size=2)}
TYPES = {"k": "INT NOT NULL", "n": "INT", "m": "BIGINT", "o": "INT", "t": "STRING", "a": "ARRAY<INT>"}
NUMERIC = ("sum", "product", "max", "min", "first_value", "last_value", "first_non_null_value", "last_non_null_value")


class TableModel:
    """Runs of records by key; each step folds as the model folds."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.runs: list[dict[int, Record]] = []
        self.next_sequence = 0

    def flush(self, rows: list[tuple[str, dict[str, Any]]]) -> None:
        records: list[Record] = []
        for kind, values in rows:
            if kind in {"-U", "-D"} and self.model.flag("ignore-delete"):
                continue
            records.append((kind, self.next_sequence, values))
            self.next_sequence += 1
        self.runs.append(self._merged([{number: record} for number, record in enumerate(records)]))

    def compact(self) -> None:
        self.runs = [{key: record for key, record in self._merged(self.runs).items() if record[0] in {"+I", "+U"}}]

    def rows(self) -> list[Any]:
        merged = self._merged(self.runs).values()
        return sorted(text_of(record[2]) for record in merged if record[0] in {"+I", "+U"})

    def _merged(self, runs: list[dict[int, Record]]) -> dict[int, Record]:
        by_key: dict[int, list[Record]] = {}
        for record in itertools.chain.from_iterable(run.values() for run in runs):
            by_key.setdefault(record[2]["k"], []).append(record)
        merged = {key: self.model.merge(sorted(records, key=self._age)) for key, records in by_key.items()}
        return {key: record for key, record in merged.items() if record is not None}

    def _age(self, record: Record) -> Any:
        name = self.model.options.get("sequence.field")
        down = self.model.options.get("sequence.field.sort-order") == "descending"
        user = record[2][name] if name else None
        return order_of(-user if down and user is not None else user, "INT"), record[1], record[0] in {"+I", "+U"}


@st.composite
def engines(draw: st.DrawFn) -> dict[str, str]:
    options = {"merge-engine": draw(st.sampled_from(["deduplicate", "partial-update", "aggregation"]))}
    if draw(st.booleans()):
        options |= {"sequence.field": "o", "sequence.field.sort-order": draw(st.sampled_from(["ascending", "descending"]))}
    if options["merge-engine"] == "aggregation":
        options["fields.n.aggregate-function"] = draw(st.sampled_from(NUMERIC))
        options["fields.m.aggregate-function"] = draw(st.sampled_from(NUMERIC))
        options["fields.t.aggregate-function"] = draw(st.sampled_from(["listagg", "max", "last_value"]))
        options["fields.a.aggregate-function"] = draw(st.sampled_from(["collect", "last_non_null_value"]))
        retracting = draw(st.sampled_from([{}, {f"fields.{c}.ignore-retract": "true" for c in "nmt"}, {"ignore-delete": "true"}]))
        return options | (retracting or draw(st.sampled_from([{}, {"aggregation.remove-record-on-delete": "true"}])))
    if options["merge-engine"] == "partial-update":
        grouped = {
            "fields.m.sequence-group": "n,t",
            "fields.n.aggregate-function": draw(st.sampled_from(["sum", "last_value", "last_non_null_value"])),
        }
        on_group = {"partial-update.remove-record-on-sequence-group": "m"}
        choices = [{}, {"ignore-delete": "true"}, {"partial-update.remove-record-on-delete": "true"}, grouped, grouped | on_group]
        options |= draw(st.sampled_from(choices))
    return options


def read(store: FileStore, columns: tuple[str, ...]) -> list[Any]:
    plan = ScanPlanner(store).plan(snapshot=store.snapshots.latest(), columns=columns)
    tables = [b for split in plan.splits for b in read_split(store, split, columns=columns)]
    rows = [row for batch in tables for row in batch.to_pylist()]
    return sorted(map(text_of, rows))


def text_of(row: dict[str, Any]) -> str:
    return repr(sorted(shown(("+I", 0, row), TYPES)[2].items()))


@settings(max_examples=some(10), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(engines(), st.data())
def test_tables_of_every_engine_hold_what_the_model_holds(options: dict[str, str], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t"
        ddl = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        spills = data.draw(st.booleans())
        settings_ = {"bucket": "1", "write-only": "true", "write-buffer-size": "1 b" if spills else "1 mb", **options}
        SchemaManager(LocalFileIO(), str(path)).create(build_schema(ddl, primary_keys=("k",), options=settings_))
        store = FileStore.open(path)
        fold = merge_function_for(store.schema)
        refused = {KINDS[kind] for kind in (UPDATE_BEFORE, DELETE) if fold.refusal(kind) is not None}
        kinds = st.sampled_from([kind for kind in ("+I", "+I", *KINDS) if kind not in refused])
        rows = st.fixed_dictionaries({"k": st.integers(0, 2), **COLUMNS})
        model = TableModel(Model(TYPES, ("k",), options))
        for _ in range(data.draw(st.integers(1, 4))):
            flushed = data.draw(st.lists(st.tuples(kinds, rows), min_size=1, max_size=6))
            try:
                model.flush(flushed)
                model.rows()
            except CannotMerge:
                return
            with TableWrite(store) as job, use_thresholds(route_rows=1):  # every piece goes to its bucket at once
                for piece in (flushed[:2], flushed[2:3], flushed[3:]):
                    table = pa.Table.from_pylist([values for _, values in piece], schema=store.schema.arrow)
                    job.write(table, kinds=pa.array([KINDS.index(kind) for kind, _ in piece], pa.int8()))
                commit(store, job.prepare_commit())
            if data.draw(st.booleans()):
                compact_all(store)
                model.compact()
            assert read(store, store.schema.names) == model.rows()
        assert read(store, ("t", "k")) == sorted(text_of({c: record[2][c] for c in "tk"}) for record in live(model))


def live(model: TableModel) -> list[Record]:
    return [record for record in model._merged(model.runs).values() if record[0] in {"+I", "+U"}]
