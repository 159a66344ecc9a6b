"""Both engines asked about one table: the same rows, with and without filters, no file skipped that holds rows, the same index answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fileindex.format.container import ContainerReader
from fileindex.predicate.tree import Compare, In, Predicate, StartsWith, leaves
from fileindex.predicate.tree import Op as Operator
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, RowSet
from lsm.read.split import read_split
from lsm.scan.planner import ScanPlanner
from lsm.schema.evolution import SchemaMapping, column_types
from manifest.entry.data_file import ManifestEntry
from manifest.schema.table_schema import TableSchema
from manifest.store import FileStore
from manifest.types.data_type import DataType
from pyspark_paimon import Table
from sparkexpr.values.column_type import BINARIES, FLOATS, ColumnType, Kind
from tests.golden_rows import ENGINES_VIEW, canonical, canonical_rows, golden_predicate, golden_rows
from tests.interop.engine import Engine

Filter = dict[str, Any]
_ORDERED = ("<", "<=", ">", ">=")


def agree(
    engine: Engine,
    path: Path,
    *,
    filters: int = 4,
    seed: int = 0,
    unordered: Sequence[str] = (),
    unasked: Sequence[str] = (),
) -> list[str]:
    """Compare everything that both engines say of the table at ``path``; the rows, canonical and sorted, come back.

    Lists in columns of ``unordered`` count as sets: the engine gives them the order of a hash map. Filters have no operation of
    ``unasked``: there the engine's own answer is wrong.
    """
    assert engine.fsck(path) == []
    table = Table.open(path)
    schema = table.table_schema
    rows = engine.dump(path)
    theirs = settled(canonical_rows(rows, schema), unordered)
    assert settled(golden_rows(table.scan(options=ENGINES_VIEW).to_arrow(), schema), unordered) == theirs
    draw = random.Random(f"{path.name} {seed}")
    for _ in range(filters if rows else 0):
        agree_on_filter(engine, path, made_filter(draw, rows, schema, unasked), unordered)
    return theirs


def settled(lines: list[str], unordered: Sequence[str]) -> list[str]:
    """Canonical rows with the lists of some columns sorted."""
    if not unordered:
        return lines
    rows = map(json.loads, lines)
    return sorted(canonical({**row, **{name: sorted(row[name] or (), key=repr) for name in unordered}}) for row in rows)


def agree_on_filter(engine: Engine, path: Path, form: Filter, unordered: Sequence[str] = ()) -> None:
    """The rows of a filter, the files that it leaves, and the answers of the files' indexes."""
    store = FileStore.open(str(path), dynamic_options=ENGINES_VIEW)
    predicate = golden_predicate(form, store.schema)
    assert predicate is not None
    plan = ScanPlanner(store).plan(predicate, snapshot=store.snapshots.latest())
    batches = [b for split in plan.splits for b in read_split(store, split, columns=store.schema.names, predicate=predicate)]
    ours = golden_rows(pa.Table.from_batches(batches, schema=store.schema.arrow), store.schema)
    assert settled(ours, unordered) == settled(canonical_rows(engine.dump(path, form), store.schema), unordered), form
    kinds = {store.schema.column_types[leaf.column.name].kind for leaf in leaves(predicate)}
    kept = {file.file_name for split in plan.splits for file in split.files if not kinds & file.unbounded}
    planned = {file["file"] for split in engine.plan(path, form) for file in split["files"]}
    assert kept <= planned, form
    agree_on_indexes(engine, path, store, form, predicate)


def agree_on_indexes(engine: Engine, path: Path, store: FileStore, form: Filter, predicate: Predicate) -> int:
    """The rows that the index of each file lets through; how many files were asked."""
    entries = {entry.file.file_name: entry for entry in store.live_entries(store.snapshots.latest()).entries()}
    answers = engine.index_eval(path, form)
    assert {answer["file"] for answer in answers} == {name for name, entry in entries.items() if container_of(store, entry) is not None}
    for answer in answers:
        entry = entries[answer["file"]]
        found = our_answer(store, entry, predicate)
        theirs = java_answer(answer)
        if any(map(_answers_less, leaves(predicate))):
            assert found <= theirs, (form, answer)
        else:
            assert found == theirs, (form, answer)
    return len(answers)


def our_answer(store: FileStore, entry: ManifestEntry, predicate: Predicate) -> set[int]:
    """The positions that our reading of a file's index leaves."""
    content, rows = container_of(store, entry), entry.file.row_count
    assert content is not None
    types: Mapping[str, ColumnType] = store.schema.column_types
    said: Predicate | Any = predicate
    if entry.file.schema_id != store.schema.id:
        own = store.schemas.get(entry.file.schema_id)
        said = SchemaMapping.of(store.schema.fields, own.fields, own.id).to_file(predicate).inclusive
        types = column_types(own.fields)
    result = evaluate(said, ContainerReader.of(content, entry.file.index_file or ""), types, rows, IndexMetrics())
    return set(range(rows)) if result is REMAIN else set(result.rows) if isinstance(result, RowSet) else set()


def java_answer(answer: Mapping[str, Any]) -> set[int]:
    """The positions that the Java classes leave."""
    if answer["index"].startswith("BITMAP"):
        return set(answer["positions"])
    return set(range(answer["rowCount"])) if answer["index"] == "REMAIN" else set()


def container_of(store: FileStore, entry: ManifestEntry) -> bytes | None:
    """The index container of a file, from the manifest or from beside it."""
    if entry.file.embedded_index is not None:
        return entry.file.embedded_index
    paths = store.physical_files(entry.partition, entry.bucket, entry.file)
    beside = [path for path in paths if path.endswith(".index")]
    return store.file_io.read(beside[0]) if beside else None


def _answers_less(leaf: Predicate) -> bool:
    """Where we drop null rows that the Java bitmap keeps, or know prefixes that its range bitmap does not."""
    return isinstance(leaf, StartsWith) or (isinstance(leaf, Compare) and leaf.op is Operator.NE) or (isinstance(leaf, In) and leaf.negated)


# ---------------------------------------------------------------- filters


def made_filter(draw: random.Random, rows: Sequence[Mapping[str, Any]], schema: TableSchema, unasked: Sequence[str] = ()) -> Filter:
    """A filter on values that the table has."""
    kind = draw.random()
    if kind < 0.7:
        return made_leaf(draw, rows, schema, unasked)
    return {"op": "and" if kind < 0.85 else "or", "args": [made_leaf(draw, rows, schema, unasked) for _ in range(2)]}


def made_leaf(draw: random.Random, rows: Sequence[Mapping[str, Any]], schema: TableSchema, unasked: Sequence[str] = ()) -> Filter:
    """One comparison; binary columns have no order here, and zeros of floats are left out: Java tells their signs apart."""
    entries = [(field.name, key) for field in schema.fields if _has_entries(field.type) for key in ("clicks", "price", "a")]
    name, key = draw.choice([(field.name, None) for field in schema.fields if not field.type.is_nested] + entries)
    column_type, shown = schema.column_types[name], name if key is None else f"{name}[{key}]"
    if key is not None:
        assert column_type.value is not None
        column_type = column_type.value
        found = [dict(row[name] or ()).get(key) for row in rows]
    else:
        found = [row[name] for row in rows]
    values = [value for value in found if value is not None and not (column_type.kind in FLOATS and value == 0)]
    ops = ["=", "!=", "in", "not_in", "is_null", "is_not_null"]
    if column_type.kind not in BINARIES | {Kind.BOOLEAN}:
        ops += [*_ORDERED, "between"]
    if column_type.kind in {Kind.VARCHAR, Kind.CHAR}:
        ops.append("starts_with")
    op = draw.choice([op for op in (ops if values else ["is_null", "is_not_null"]) if op not in unasked])
    if op.startswith("is_"):
        return {"op": op, "col": shown}
    if op in {"in", "not_in"}:
        return {"op": op, "col": shown, "values": _distinct(draw.choices(values, k=3))}
    if op == "between":
        low, high = draw.choice(values), draw.choice(values)
        return {"op": op, "col": shown, "values": [low, high]}
    value = draw.choice(values)
    return {"op": op, "col": shown, "value": value[: draw.randrange(1, 6)] if op == "starts_with" else value}


def _has_entries(data_type: DataType) -> bool:
    """Whether filters can ask for a map's entries: text keys, plain values."""
    if data_type.kind is not Kind.MAP:
        return False
    key, value = data_type.part("key"), data_type.part("value")
    return key.kind is Kind.VARCHAR and not value.is_nested


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list({str(value): value for value in values}.values())
