"""Containers that the Java engine wrote, asked the filters of the golden tables: the same answers, and never fewer rows than match."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fileindex.build.options import FileIndexOptions, parse_column
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.bloom_filter import BloomFilterBuilder, BloomFilterReader, BloomSize
from fileindex.format.container import ContainerReader, Payload, write_index_container
from fileindex.predicate.evaluate_rows import mask, type_of
from fileindex.predicate.tree import And, Compare, In, IsNull, Op, Or, StartsWith, leaves
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, RowSet
from lsm.data_file_format import open_data_file
from lsm.schema.evolution import SchemaMapping, column_types
from manifest.avro.container import read_container
from manifest.io.file_io import LocalFileIO
from manifest.store import FileStore
from manifest.types.data_type import DataField, DataType
from sparkexpr.expression.nested import column_part
from sparkexpr.values.column_type import BINARIES, FLOATS, TIMESTAMPS, ColumnType, Kind
from sparkexpr.values.plain_value import plain_array

GOLDEN = Path(__file__).parents[2] / "golden"
EVOLVED = {"evolved", "evolved_append"}  # their filters must be mapped to the files' older schemas first


def cases():
    for plans in sorted(GOLDEN.glob("*/plans.json")):
        table = plans.parent.name
        for number, plan in enumerate(json.loads(plans.read_text())):
            if plan["index_eval"] and table not in EVOLVED:
                yield pytest.param(table, plan["filter"], plan["index_eval"], id=f"{table}-{number}-{plan['filter']['op']}")


@cache
def schema(table):
    fields = json.loads((GOLDEN / table / "table/schema/schema-0").read_text())
    return {field["name"]: DataType.from_json(field["type"]).column_type for field in fields["fields"]}, fields["options"]


@cache
def containers(table):
    """Container bytes by data file name: from manifest entries, else from the ``.index`` files beside the data files."""
    found = {}
    for path in (GOLDEN / table / "table/manifest").glob("manifest-*"):
        if path.name.startswith("manifest-list"):
            continue
        for entry in read_container(path.name, path.read_bytes()).records():
            meta = entry["_FILE"]
            if meta["_EMBEDDED_FILE_INDEX"] is not None:
                found[meta["_FILE_NAME"]] = meta["_EMBEDDED_FILE_INDEX"]
    for path in (GOLDEN / table / "table").rglob("*.index"):
        found.setdefault(path.name.removesuffix(".index"), path.read_bytes())
    return found


@cache
def rows_of(table, file):
    (path,) = (GOLDEN / table / "table").rglob(file)
    with open_data_file(LocalFileIO(), str(path)) as data:
        rows = pa.Table.from_batches(data.batches(data.schema.names, data.row_groups))
    wanted = FileStore.open(GOLDEN / table / "table").schema.arrow
    return rows.cast(pa.schema([wanted.field(field.name) if field.name in wanted.names else field for field in rows.schema]))


def plain(value, column_type):
    match column_type.kind:
        case Kind.DATE:
            return (dt.date.fromisoformat(value) - dt.date(1970, 1, 1)).days
        case Kind.DECIMAL:
            return int(Decimal(value) * 10**column_type.scale)
        case Kind.FLOAT:
            return float(np.float32(value))
        case kind if kind in FLOATS:
            return float(value)
        case kind if kind in BINARIES:
            return bytes.fromhex(value)
        case kind if kind in TIMESTAMPS:
            return pa.scalar(value.removesuffix("Z")).cast(pa.timestamp(column_type.unit)).value
        case _:
            return value


def predicate_of(node, types):
    op = node["op"]
    if op in {"and", "or"}:
        return (And if op == "and" else Or)(tuple(predicate_of(child, types) for child in node["args"]))
    column = parse_column(node["col"])
    kind = type_of(column, types)
    if op in {"is_null", "is_not_null"}:
        return IsNull(column, negated=op == "is_not_null")
    if op == "starts_with":
        return StartsWith(column, node["value"])
    if "value" in node:
        return Compare(column, Op("<>" if op == "!=" else op), plain(node["value"], kind))
    values = tuple(plain(value, kind) for value in node["values"])
    if op == "between":
        return And((Compare(column, Op.GE, values[0]), Compare(column, Op.LE, values[1])))
    return In(column, values, negated=op == "not_in")


def asks_for_a_zero(leaf):
    values = (leaf.value,) if isinstance(leaf, Compare) else leaf.values if isinstance(leaf, In) else ()
    return any(isinstance(value, float) and value == 0 for value in values)


def answers_more(leaf):
    """The Java bitmap keeps null rows where we drop them, and its range-bitmap knows no prefixes."""
    return isinstance(leaf, StartsWith) or (isinstance(leaf, Compare) and leaf.op is Op.NE) or (isinstance(leaf, In) and leaf.negated)


@pytest.mark.sizes
@pytest.mark.parametrize(("table", "node", "answers"), list(cases()))
def test_an_index_answers_as_the_java_engine_does(table, node, answers):
    types, _ = schema(table)
    predicate = predicate_of(node, types)
    for answer in answers:
        container = ContainerReader.of(containers(table)[answer["file"]])
        notes = IndexMetrics()
        result = evaluate(predicate, container, types, answer["rowCount"], notes)
        rows = rows_of(table, answer["file"])
        assert len(rows) == answer["rowCount"]
        matching = set(np.flatnonzero(mask(predicate, rows, types).to_numpy()).tolist())
        found = set(range(answer["rowCount"])) if result is REMAIN else set(result.rows) if isinstance(result, RowSet) else set()
        assert found >= matching
        if result.exact:
            assert found == matching
        assert not notes.warnings
        expected = answer["index"]
        if any(map(asks_for_a_zero, leaves(predicate))):
            continue  # the Java engine tells the zeros apart, we must not
        count = (
            int(expected.removeprefix("BITMAP:")) if expected.startswith("BITMAP:") else answer["rowCount"] if expected == "REMAIN" else 0
        )
        if any(map(answers_more, leaves(predicate))):
            assert len(found) <= count
        else:
            assert len(found) == count


def test_indexes_of_older_schemas_answer_as_the_java_engine_does():
    """Filters on today's columns, said of each file's own: renamed, added and widened ones."""
    table, compared = "evolved_append", 0
    schemas = {
        int(path.name.removeprefix("schema-")): [DataField.from_json(field) for field in json.loads(path.read_text())["fields"]]
        for path in (GOLDEN / table / "table/schema").glob("schema-*")
    }
    today = schemas[max(schemas)]
    schema_ids = {file["file"]: file["schemaId"] for file in json.loads((GOLDEN / table / "files.json").read_text())}
    for plan in json.loads((GOLDEN / table / "plans.json").read_text()):
        for answer in plan["index_eval"] or ():
            schema_id, rows = schema_ids[answer["file"]], answer["rowCount"]
            mapping = SchemaMapping.of(today, schemas[schema_id], schema_id)
            predicate = mapping.to_file(predicate_of(plan["filter"], column_types(today))).inclusive
            container = ContainerReader.of(containers(table)[answer["file"]])
            result = evaluate(predicate, container, column_types(schemas[schema_id]), rows, IndexMetrics())
            found = rows if result is REMAIN else len(result.rows) if isinstance(result, RowSet) else 0
            java = answer["index"]
            expected = int(java.removeprefix("BITMAP:")) if java.startswith("BITMAP:") else rows if java == "REMAIN" else 0
            assert found <= expected if any(map(answers_more, leaves(predicate))) else found == expected
            compared += 1
    assert compared > 30


@pytest.mark.sizes
@pytest.mark.parametrize("table", sorted(path.parent.name for path in GOLDEN.glob("*/table")))
def test_our_indexes_of_the_same_rows_answer_like_those_of_the_java_engine(table):
    if table in EVOLVED:
        return
    types, raw = schema(table)
    options = FileIndexOptions.parse(raw, types, strict=False)
    for file, theirs in containers(table).items():
        if not list((GOLDEN / table / "table").rglob(file)):
            continue  # of an expired or replaced file
        java = ContainerReader.of(theirs)
        known = {(entry.column, entry.index_type): entry for entry in java.entries()}
        writer = DataFileIndexWriter.create(options, types)
        rows = rows_of(table, file)
        for batch in rows.to_batches(max_chunksize=17):
            writer.write(batch)
        ours = ContainerReader.of(write_index_container(writer.finish()))
        assert {(entry.column, entry.index_type) for entry in ours.entries()} == set(known)
        for entry in ours.entries():
            original = java.payload(known[entry.column, entry.index_type]).whole()
            if entry.is_empty:  # of a column of nulls, whose rows Paimon's reader would not find
                assert (entry.index_type, len(original)) == ("range-bitmap", 1080)
                continue
            own = ours.payload(entry).whole()
            if entry.index_type == "bitmap":
                assert len(own) == len(original)  # the order of the sets in its body is a Java hash map's
            elif entry.index_type == "bloom-filter":  # Java's filter has room for all items, ours for those of the file
                assert len(own) <= len(original)
                column = parse_column(entry.column)
                kind = type_of(column, types)
                java_size = BloomFilterReader(Payload.of(original), kind)
                builder = BloomFilterBuilder(kind, BloomSize(java_size.bits, java_size.hashes))
                for batch in rows.to_batches(max_chunksize=17):
                    builder.add(plain_array(column_part(batch.column(column.name), column.key), kind))
                assert builder.finish() == original
            else:
                assert own == original


def test_all_types_of_the_golden_tables_are_understood():
    assert schema("all_types")[0]["c_map"] == ColumnType(
        Kind.MAP, key=ColumnType(Kind.VARCHAR, length=2**31 - 1), value=ColumnType(Kind.DOUBLE)
    )
