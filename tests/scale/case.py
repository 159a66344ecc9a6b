"""One case: a table is made, written, changed, compacted, indexed and asked, and compared with its model after each step."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_base.thresholds import Thresholds, use_thresholds
from tests.scale.columns import Column, Dice, made
from tests.scale.kinds import CODECS, SIZES, Kind, Size, draw_kind, index_options, new_column
from tests.scale.model import Model, difference
from tests.scale.questions import Question, draw_question

STEPS = ("write", "write", "write", "grow", "delete", "update", "compact", "full", "index", "kinds", "turn", "evolve", "cluster")
FORMS = ("table", "dictionary", "large", "view", "stream")
WIDER = {"TINYINT": "INT", "INT": "BIGINT", "DECIMAL(12, 2)": "DECIMAL(18, 2)", "VARCHAR(40)": "STRING"}
SIZES_OF_WRITES = (1.0, 0.25, 0.02)
"""Shares of the largest write: files of three sizes."""


class WrongRows(Exception):
    """Rows that differ from the model, or a check that reports a problem."""


@dataclass(frozen=True)
class Found:
    """What a case found: a verdict of the torture, what was wrong, and the steps until then."""

    kind: str
    verdict: str
    detail: str
    steps: tuple[str, ...]


def run(number: int, path: str, sizes: tuple[Size, ...] = SIZES, note: Callable[[str], None] = lambda _: None) -> Found:
    """Run the case of a seed."""
    dice = np.random.default_rng(number)
    kind = draw_kind(dice, sizes)
    steps: list[str] = []

    def noted(step: str) -> None:
        steps.append(step)
        note(step)

    with use_thresholds(Thresholds.tiny() if kind.size.tiny else Thresholds()):
        try:
            Case(kind, dice, path, noted).play()
        except WrongRows as wrong:
            return Found(kind.name, "wrong rows", str(wrong), tuple(steps))
        except Exception:  # noqa: BLE001 -- every step is valid, so any error is a fault
            return Found(kind.name, "untyped error", traceback.format_exc()[-4000:], tuple(steps))
    return Found(kind.name, "right", "", tuple(steps))


class Case:
    """A table and its model."""

    def __init__(self, kind: Kind, dice: Dice, path: str, note: Callable[[str], None]) -> None:
        note(f"create {kind.ddl}; keys {kind.keys}, partitioned {kind.partitioned}, {kind.engine}, {kind.options}")
        self.kind, self.dice, self.note = kind, dice, note
        self.table = kind.create(path)
        self.columns = list(kind.columns)
        self.model = Model(kind.engine, self._nullable())
        self.next_id = 0
        self.added = 0

    def _nullable(self) -> pa.Schema:
        return pa.schema([field.with_nullable(True) for field in self.table.schema])

    def play(self) -> None:
        self.write(1.0)
        for _ in range(self.kind.size.steps):
            step = self.dice.choice(STEPS)
            getattr(self, f"_{step}")()
            self.ask(2)
        self.check("scan at the end")
        self.note("fsck")
        if problems := self.table.fsck("deep").problems:
            raise WrongRows(f"fsck: {problems[:4]}")
        self._full()
        self.ask(3)
        if problems := self.table.fsck("deep").problems:
            raise WrongRows(f"fsck after the last compaction: {problems[:4]}")

    def rows(self, count: int) -> pa.Table:
        """New rows: of ids that are there and others, in some order."""
        dice = self.dice
        if self.kind.engine == "append":
            ids = np.arange(self.next_id, self.next_id + count)
        else:
            span = max(count, self.next_id) if dice.random() < 0.5 else 2 * count
            start = int(dice.integers(0, max(1, self.next_id)))
            ids = start + (np.arange(count) if dice.random() < 0.3 else dice.integers(0, span, count))
        self.next_id = max(self.next_id, int(ids.max()) + 1)
        if dice.random() < 0.5:
            dice.shuffle(ids)
        arrays = {"id": pa.array(ids)}
        if "ks" in self.kind.keys:  # of other order than the ids
            arrays["ks"] = pc.binary_join_element_wise(
                "k", pa.array(ids * 7919 % (1 << 20)).cast(pa.string()), pa.array(ids).cast(pa.string()), "-"
            )
        if self.kind.partitioned:
            arrays["p"] = pc.binary_join_element_wise("p", pa.array(ids % 3).cast(pa.string()), "")
        for column in self.columns:
            arrays[column.name] = made(column, dice, count)
        schema = self.model.rows.schema
        return pa.Table.from_arrays([arrays[name] for name in schema.names], schema=schema)

    def write(self, share: float) -> None:
        new = self.rows(max(1, int(self.kind.size.rows * share)))
        form = str(self.dice.choice(FORMS))
        self.note(f"write {new.num_rows} rows as {form}")
        self.table.write(in_form(new, form))
        self.model.write(new)

    def _write(self) -> None:
        self.write(float(self.dice.choice(SIZES_OF_WRITES, p=[0.15, 0.35, 0.5])))

    def _grow(self) -> None:
        """Add a column and write rows that have it."""
        self.added += 1
        column = new_column(self.dice, self.added)
        self.note(f"add {column.ddl}")
        self.table = self.table.add_column(column.name, column.type)
        self.model.add_column(column.name, self.table.schema.field(column.name).type)
        self.columns.append(column)
        self._write()

    def _kinds(self) -> None:
        """Write rows of which some delete their key."""
        if self.kind.engine != "deduplicate":
            return self._write()
        new = self.rows(max(1, int(self.kind.size.rows * 0.1)))
        deleted = self.dice.random(new.num_rows) < 0.4
        self.note(f"write {new.num_rows} rows, {int(deleted.sum())} of them deletes")
        kinds = pc.if_else(pa.array(deleted), "-D", "+I")
        self.table.write(new.append_column("_row_kind", kinds))
        self.model.write(new, deleted)
        return None

    def _turn(self) -> None:
        """Let new files have another format and codec."""
        options = {"file.format": str(self.dice.choice(["parquet", "orc", "avro"])), "file.compression": str(self.dice.choice(CODECS[:3]))}
        self.note(f"alter {options}")
        self.table = self.table.alter_options(options)
        self._write()

    def _evolve(self) -> None:
        """Rename a column, or give it a wider type."""
        at = int(self.dice.integers(0, len(self.columns)))
        column = self.columns[at]
        if column.type in WIDER:
            new = replace(column, type=WIDER[column.type])
            self.note(f"widen {column.name} to {new.type}")
            self.table = self.table.change_type(column.name, new.type)
        elif column.name != "n":  # it has an aggregate function
            self.added += 1
            new = replace(column, name=f"renamed{self.added}")
            self.note(f"rename {column.name} to {new.name}")
            self.table = self.table.alter_options({key: None for key in self.table.options if key.startswith("file-index.")})
            self.table = self.table.rename_column(column.name, new.name)
        else:
            return
        self.columns[at] = new
        self.model.replace_column(column.name, new.name, self.table.schema.field(new.name).type)

    def _cluster(self) -> None:
        """Sort all rows of an append table by a column."""
        if self.kind.engine != "append" or self.table.options["bucket"] != "-1":
            return self._compact()
        asked = [column.name for column in self.columns if column.asked]
        order = [str(self.dice.choice(asked)), *(["id"] if self.dice.random() < 0.5 else [])]
        strategy = str(self.dice.choice(["order", "zorder", "hilbert"]))
        self.note(f"compact by {order}, {strategy}")
        self.table.compact(order_by=order, strategy=strategy)
        return None

    def _delete(self) -> None:
        if self.kind.engine not in {"deduplicate", "append"} or not self.model.rows.num_rows:
            return
        asked = draw_question(self.dice, self.model.rows, self._asked())
        self.note(f"delete {asked}")
        count = self.table.delete(asked.sql, params=asked.params).rows
        if count != pc.sum(asked.rows).as_py():
            raise WrongRows(f"{count} rows deleted instead of {pc.sum(asked.rows)}")
        self.model.delete(asked.rows)

    def _update(self) -> None:
        if self.kind.engine not in {"deduplicate", "append"} or not self.model.rows.num_rows:
            return
        asked = draw_question(self.dice, self.model.rows, self._asked())
        column = self.columns[int(self.dice.integers(0, len(self.columns)))]
        # Not a wide text: as many rows as match would have it.
        value = made(column, self.dice, 9)[0].as_py() if column.asked and column.name != "w" else None
        self.note(f"update {asked}: {column.name} = {str(value)[:60]}")
        self.table.update(asked.sql, values={column.name: value}, params=asked.params)
        self.model.update(asked.rows, column.name, value)

    def _compact(self) -> None:
        self.note("compact")
        self.table.compact()

    def _full(self) -> None:
        self.note("compact fully")
        self.table.compact(full=True)
        self.check("scan after a full compaction")

    def _index(self) -> None:
        none = {key: None for key in self.table.options if key.startswith("file-index.")}
        options = index_options(self.dice, self.columns)
        self.note(f"rewrite indexes: {options}")
        self.table = self.table.alter_options({**none, **options})
        self.table.rewrite_file_index()

    def _asked(self) -> list[Column]:
        return [Column("id", "BIGINT", lambda _, __: None), *self.columns]

    def ask(self, times: int) -> None:
        """Compare filtered scans and their counts with the model."""
        for _ in range(times if self.model.rows.num_rows else 0):
            asked = draw_question(self.dice, self.model.rows, self._asked())
            names = self.model.rows.schema.names[1:]
            shown = ["id", *sorted(self.dice.choice(names, int(self.dice.integers(0, len(names) + 1)), replace=False).tolist())]
            self.note(f"scan {asked} {shown}")
            expected = self.model.rows.filter(asked.rows).select(shown)
            scan = self.table.scan(asked.sql, columns=shown, params=asked.params)
            self._compare(scan.to_arrow(), expected, str(asked))
            if scan.count() != expected.num_rows:
                raise WrongRows(f"{asked}: count {scan.count()} instead of {expected.num_rows}")
            if self.dice.random() < 0.3:
                self._ask_top(asked)
            if self.kind.keys == ("id",) and self.dice.random() < 0.3:
                self._look_up()

    def _ask_top(self, asked: Question) -> None:
        """Compare the first rows by a number, and its sum, with the model."""
        numbers = [column.name for column in self.columns if column.type in {"BIGINT", "INT", "TINYINT"} and column.summed]
        name = str(self.dice.choice(["id", *numbers]))
        self.note(f"order by {name}, sum {name}")
        rows, count = self.model.rows.filter(asked.rows), int(self.dice.choice([1, 10, 1000]))
        falls = bool(self.dice.random() < 0.5)
        scan = self.table.scan(asked.sql, params=asked.params, order_by=f"{name} {'DESC' if falls else 'ASC'}", limit=count)
        found = scan.to_arrow().column(name).combine_chunks()
        values = rows.column(name).combine_chunks()
        placement = "at_end" if falls else "at_start"  # as in Spark
        order = pc.array_sort_indices(values, order="descending" if falls else "ascending", null_placement=placement)
        if not found.equals(values.take(order[:count])):
            raise WrongRows(f"{asked}: order by {name}, falls {falls}: {found[:5]!s} instead of {values.take(order[:5])!s}")
        sums = self.table.scan(asked.sql, params=asked.params).aggregate({name: ["sum", "min"]})
        expected = [pc.sum(values).as_py(), pc.min(values).as_py()]
        if [sums[f"{name}_{part}"][0].as_py() for part in ("sum", "min")] != expected:
            raise WrongRows(f"{asked}: sum and minimum of {name}: {sums.to_pylist()} instead of {expected}")

    def _look_up(self) -> None:
        """Compare rows by their keys with the model."""
        ids = np.unique(self.dice.integers(0, self.next_id + 3, int(self.dice.choice([1, 20, 300]))))
        self.note(f"look up {len(ids)} keys")
        found = self.table.lookup({"id": ids.tolist()})
        self._compare(found, self.model.rows.filter(pc.is_in(self.model.rows.column("id"), pa.array(ids))), "lookup")

    def check(self, what: str) -> None:
        self.note(what)
        self._compare(self.table.scan().to_arrow(), self.model.rows, what)

    def _compare(self, found: pa.Table, expected: pa.Table, what: str) -> None:
        if differs := difference(found, expected):
            raise WrongRows(f"{what}: {differs}")


def in_form(rows: pa.Table, form: str) -> pa.Table | pa.RecordBatchReader:
    """Rows whose texts are dictionaries, long or views, or that come in batches."""
    if form == "stream":
        return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=max(1, rows.num_rows // 7)))
    kinds = {"dictionary": pa.dictionary(pa.int32(), pa.string()), "large": pa.large_string(), "view": pa.string_view()}
    if form not in kinds:
        return rows
    fields = [field.with_type(kinds[form]) if pa.types.is_string(field.type) else field for field in rows.schema]
    return rows.cast(pa.schema(fields))
