"""A table beside a dictionary: any order of writes, changes, compactions, index rewrites, alters and expiries, for every merge engine."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import Table
from tests.build import ids
from tests.examples import some
from tests.tiny import tiny_options

Row = dict[str, Any]
NUMBERS = st.one_of(st.none(), st.integers(-3, 3))
TEXTS = st.sampled_from([None, "", "\0", "a", "a\0", "b", "b\0", "bb"])
ROWS = st.lists(st.fixed_dictionaries({"id": st.integers(0, 7), "city": TEXTS, "n": NUMBERS}), min_size=1, max_size=6)
MANY_ROWS = st.lists(st.fixed_dictionaries({"id": st.integers(0, 40), "city": TEXTS, "n": NUMBERS}), min_size=9, max_size=25)
INDEXES = [
    {},
    {"file-index.bitmap.columns": "city", "file-index.bsi.columns": "n"},
    {"file-index.range-bitmap.columns": "n,city", "file-index.in-manifest-threshold": "1 mb"},
    {"file-index.bloom-filter.columns": "n", "file-index.bloom-filter.n.items": "50", "file-index.bitmap.columns": "n"},
]
FILTERS: list[tuple[str, Any]] = [
    ("city = 'b'", lambda row: row["city"] == "b"),
    ("n > 0", lambda row: row["n"] is not None and row["n"] > 0),
    ("n = 2 OR city IS NULL", lambda row: row["n"] == 2 or row["city"] is None),
    ("city = 'b\0'", lambda row: row["city"] == "b\0"),
    ("city > 'a' AND city < 'b'", lambda row: row["city"] is not None and "a" < row["city"] < "b"),
    ("city IN ('a', 'bb') AND n <> 1", lambda row: row["city"] in {"a", "bb"} and row["n"] not in {None, 1}),
    ("id < 4 AND n IS NOT NULL", lambda row: row["id"] < 4 and row["n"] is not None),
]


def last(_: Any, new: Any) -> Any:
    return new


def last_known(old: Any, new: Any) -> Any:
    return old if new is None else new


def added(old: Any, new: Any) -> Any:
    return last_known(old, new) if old is None or new is None else old + new


class Engine:
    """What a merge engine does with a new row: how each column comes from the old value and the new."""

    def __init__(self, options: dict[str, str], city: Any, n: Any, other: Any, *, changes: bool = False) -> None:
        self.options = options
        self.city, self.n, self.other = city, n, other
        self.changes = changes

    def merged(self, old: Row | None, new: Row) -> Row:
        if old is None:
            return new
        columns = {"id": last, "city": self.city, "n": self.n}
        return {name: columns.get(name, self.other)(old.get(name), value) for name, value in new.items()}


ENGINES = {
    "deduplicate": Engine({}, last, last, last, changes=True),
    "first-row": Engine({"merge-engine": "first-row"}, lambda old, _: old, lambda old, _: old, lambda old, _: old),
    "partial-update": Engine({"merge-engine": "partial-update"}, last_known, last_known, last_known),
    "aggregation": Engine(
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.city.aggregate-function": "last_value"},
        last,
        added,
        last_known,
    ),
}


class TableMachine(RuleBasedStateMachine):
    engine: Engine
    dv: bool
    tiny: bool

    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.mkdtemp(prefix="paimon-machine-")
        self.rows: dict[int, Row] = {}
        self.extra: list[str] = []
        self.made = 0

    def teardown(self) -> None:
        problems = self.table.fsck("deep").problems if hasattr(self, "table") else ()
        shutil.rmtree(self.home)
        assert problems == ()

    @initialize(
        buckets=st.sampled_from([{"bucket": "1"}, {"bucket": "2"}, {"dynamic-bucket.target-row-num": "3"}]), index=st.sampled_from(INDEXES)
    )
    def create(self, buckets: dict[str, str], index: dict[str, str]) -> None:
        options = {**self.engine.options, **buckets, **index, "num-sorted-run.compaction-trigger": "3", "snapshot.num-retained.min": "1"}
        if self.dv:
            options["deletion-vectors.enabled"] = "true"
        if self.tiny:
            options = tiny_options(options)
        self.table = Table.create(f"{self.home}/t", "id BIGINT, city STRING, n INT", primary_keys=["id"], options=options)

    @rule(rows=ROWS, number=NUMBERS)
    def write(self, rows: list[Row], number: int | None) -> None:
        written = [{**row, **dict.fromkeys(self.extra, number)} for row in rows]
        self.table.write(pa.Table.from_pylist(written, schema=self.table.schema))
        for row in written:
            self.rows[row["id"]] = self.engine.merged(self.rows.get(row["id"]), row)

    @precondition(lambda self: self.tiny)
    @rule(rows=MANY_ROWS, number=NUMBERS)
    def write_many(self, rows: list[Row], number: int | None) -> None:
        self.write(rows, number)

    @precondition(lambda self: self.engine.changes)
    @rule(chosen=st.sampled_from(FILTERS))
    def delete(self, chosen: tuple[str, Any]) -> None:
        doomed = [key for key, row in self.rows.items() if chosen[1](row)]
        assert self.table.delete(chosen[0]).rows == len(doomed)
        for key in doomed:
            del self.rows[key]

    @precondition(lambda self: self.engine.changes)
    @rule(chosen=st.sampled_from(FILTERS), city=TEXTS)
    def update(self, chosen: tuple[str, Any], city: str | None) -> None:
        self.table.update(chosen[0], values={"city": city})
        for row in self.rows.values():
            if chosen[1](row):
                row["city"] = city

    @rule(full=st.booleans())
    def compact(self, full: bool) -> None:
        self.table.compact(full=full)

    @rule(index=st.sampled_from(INDEXES), rewrite=st.booleans())
    def change_indexes(self, index: dict[str, str], rewrite: bool) -> None:
        old = [key for key in self.table.options if key.startswith("file-index.")]
        self.table.alter_options({**dict.fromkeys(old), **index})
        if rewrite:
            self.table.rewrite_file_index()
            assert self.table.rewrite_file_index().rewritten == 0

    @rule()
    def add_column(self) -> None:
        self.made += 1
        self.table.add_column(f"c{self.made}", "INT")
        self.extra.append(f"c{self.made}")
        for row in self.rows.values():
            row[f"c{self.made}"] = None

    @precondition(lambda self: self.extra)
    @rule()
    def drop_column(self) -> None:
        name = self.extra.pop(0)
        self.table.drop_column(name)
        for row in self.rows.values():
            del row[name]

    @precondition(lambda self: self.extra)
    @rule()
    def rename_column(self) -> None:
        self.made += 1
        old, new = self.extra.pop(0), f"c{self.made}"
        self.table.rename_column(old, new)
        self.extra.append(new)
        for row in self.rows.values():
            row[new] = row.pop(old)

    @precondition(lambda self: self.table.snapshots().num_rows)
    @rule()
    def expire(self) -> None:
        self.table.expire_snapshots(retain_min=1, retain_max=1)

    @rule()
    def reopen(self) -> None:
        self.table = Table.open(self.table.path)

    @invariant()
    def holds_what_the_dictionary_holds(self) -> None:
        if not hasattr(self, "table"):
            return
        found = self.table.scan().to_arrow().to_pylist()
        assert sorted(found, key=lambda row: row["id"]) == [self.rows[key] for key in sorted(self.rows)]
        for text, matches in FILTERS:
            wanted = [key for key in sorted(self.rows) if matches(self.rows[key])]
            scan = self.table.scan(text, columns=["id"])
            assert ids(scan) == wanted, text
            assert scan.count() == len(wanted), text


def machine(engine: str, dv: bool, tiny: bool) -> type[TableMachine]:
    name = f"{'tiny ' * tiny}{engine} {'with' if dv else 'without'} deletion vectors"
    return type(name, (TableMachine,), {"engine": ENGINES[engine], "dv": dv, "tiny": tiny})


def run(engine: str, dv: bool, tiny: bool, examples: int, steps: int) -> None:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    wanted = settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=slow)
    with use_thresholds(Thresholds.tiny() if tiny else None):
        run_state_machine_as_test(machine(engine, dv, tiny), settings=wanted)


CASES = pytest.mark.parametrize(
    ("engine", "dv", "tiny"),
    [
        pytest.param(name, dv, tiny, id=f"{name}{' with vectors' * dv}{' tiny' * tiny}")
        for tiny in (False, True)
        for name in ENGINES
        for dv in (False, True)
        if (name, dv) != ("first-row", True)
    ],
)


@CASES
def test_a_table_equals_a_dictionary(engine: str, dv: bool, tiny: bool) -> None:
    run(engine, dv, tiny, examples=some(2), steps=5)


@pytest.mark.long
@CASES
def test_a_table_equals_a_dictionary_for_long(engine: str, dv: bool, tiny: bool) -> None:
    run(engine, dv, tiny, examples=145, steps=12)
