"""Bad input is a typed error that names the thing; the table stays as it was, and nothing is half visible."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from manifest.io.file_io import LocalFileIO
from manifest.store import FileStore
from pyspark_paimon import (
    CorruptFile,
    InvalidArgument,
    InvalidSchema,
    NullInKey,
    OutOfDisk,
    PaimonError,
    SchemaMismatch,
    Table,
    TableExists,
    TableNotFound,
    UnsupportedOption,
    UnsupportedTable,
    UnsupportedType,
)

GOOD = {"id": pa.array([7, 8]), "city": pa.array(["a", "b"]), "n": pa.array([1, 2], pa.int32())}


def changed(**columns: object) -> pa.Table:
    return pa.table({name: value for name, value in {**GOOD, **columns}.items() if value is not None})


def failing() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch(GOOD)
    raise RuntimeError("the source broke")


BAD_ROWS: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "a missing column": (lambda: changed(id=None), SchemaMismatch, "'id' is missing"),
    "an unknown column": (lambda: changed(extra=pa.array([1, 2])), SchemaMismatch, "'extra' is unknown"),
    "an incompatible type": (lambda: changed(n=pa.array(["x", "y"])), SchemaMismatch, "'n'"),
    "a number that does not fit": (lambda: changed(n=pa.array([1, 2**40])), SchemaMismatch, "'n'"),
    "a null in the key": (lambda: changed(id=pa.array([7, None])), NullInKey, "'id'"),
    "duplicate columns": (lambda: pa.table([*GOOD.values(), GOOD["n"]], names=[*GOOD, "n"]), SchemaMismatch, "columns named n"),
    "duplicate pandas columns": (lambda: pd.DataFrame([[1, 2]], columns=["id", "id"]), SchemaMismatch, "columns named id"),
    "pandas objects of two types": (
        lambda: pd.DataFrame({"id": [1], "city": [3], "n": pd.Series(["x"], dtype=object)}),
        SchemaMismatch,
        "'n'",
    ),
    "something else": (lambda: 42, InvalidArgument, "RecordBatchReader"),
    "text": (lambda: "id,city", InvalidArgument, "pandas DataFrame"),
    "a dictionary of no lists": (lambda: {"id": 1}, InvalidArgument, "'id' is given as int"),
    "a dictionary of other types": (lambda: {"id": ["x"]}, SchemaMismatch, "'id', row 0.*does not fit int64"),
    "a list of dictionaries and a number": (lambda: [{"id": 1}, 2], InvalidArgument, "has 2 of type int"),
    "batches that differ": (lambda: [pa.record_batch(GOOD), pa.record_batch({"id": [1]})], SchemaMismatch, "differ"),
    "a batch and a text": (lambda: [pa.record_batch(GOOD), "x"], InvalidArgument, "of type str"),
    "a source that breaks": (lambda: pa.RecordBatchReader.from_batches(pa.record_batch(GOOD).schema, failing()), Exception, "source broke"),
}


@pytest.fixture
def written(create) -> Table:
    table = create()
    table.write(pa.table({"id": [1], "city": ["Oslo"], "n": pa.array([5], pa.int32())}))
    return table


def files_below(path: str) -> set[str]:
    return {str(file) for file in Path(path).rglob("*") if file.is_file()}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_leave_the_table_as_it_was(written, case) -> None:
    make, error, says = BAD_ROWS[case]
    before = files_below(written.path)
    with pytest.raises(error, match=says):
        written.write(make())
    assert files_below(written.path) == before
    assert written.scan().to_arrow().to_pylist() == [{"id": 1, "city": "Oslo", "n": 5}]


@pytest.mark.parametrize(
    ("schema", "arguments", "error", "says"),
    [
        ("id BIGINT", {"primary_keys": ["nope"]}, InvalidSchema, "nope"),
        ("id BIGINT, id INT", {}, InvalidSchema, "id"),
        ("id BIGINT, m MAP<STRING, INT>", {"primary_keys": ["m"], "options": {"bucket": "1"}}, InvalidSchema, "m"),
        ("id BIGINT", {"partition_keys": ["day"]}, InvalidSchema, "day"),
        ("id BIGINT, day DATE", {"primary_keys": ["id"], "partition_keys": ["day"], "options": {"bucket": "1"}}, UnsupportedOption, "day"),
        ("id NOTATYPE", {}, PaimonError, "(?i)notatype"),
        ("", {}, InvalidSchema, "column"),
        (pa.schema([("d", pa.duration("s"))]), {}, UnsupportedType, "d"),
        (42, {}, InvalidArgument, "Spark schema"),
        ("id BIGINT", {"options": {"no-such-option": "1"}}, UnsupportedOption, "no-such-option"),
        ("id BIGINT", {"options": {"file.format": "csv"}}, UnsupportedOption, "file.format"),
        ("id BIGINT", {"options": {"target-file-size": "huge"}}, UnsupportedOption, "target-file-size"),
        ("id BIGINT", {"options": {"file-index.bloom-filter.columns": "nope"}}, PaimonError, "nope"),
        (
            "id BIGINT",
            {"primary_keys": ["id"], "options": {"bucket": "1", "merge-engine": "newest-row"}},
            UnsupportedOption,
            "merge-engine",
        ),
    ],
)
def test_a_table_that_cannot_be_is_not_created(tmp_path, schema, arguments, error, says) -> None:
    with pytest.raises(error, match=says):
        Table.create(tmp_path / "t", schema, **arguments)
    assert files_below(str(tmp_path)) == set()


def test_a_path_that_is_no_table_is_named(tmp_path) -> None:
    (tmp_path / "plain").mkdir()
    for path in (tmp_path / "nothing", tmp_path / "plain"):
        with pytest.raises(TableNotFound, match=path.name):
            Table.open(path)


def test_a_table_that_exists_is_not_created_again(written) -> None:
    with pytest.raises(TableExists):
        Table.create(written.path, "other INT")
    assert written.schema.names == ["id", "city", "n"]


def test_other_file_systems_are_refused_by_name() -> None:
    with pytest.raises(PaimonError, match="s3"):
        Table.open("s3://bucket/table")


def metadata_files(table: Table) -> dict[str, Path]:
    store = FileStore.open(table.path)
    snapshot = store.snapshots.latest()
    assert snapshot is not None
    meta = store.manifest_metas(snapshot)[-1]
    entry = store.live_entries(snapshot).entries()[0]
    return {
        "schema": Path(store.paths.schema_file(0)),
        "snapshot": Path(store.paths.snapshot_file(snapshot.id)),
        "manifest list": Path(store.paths.manifest(snapshot.delta_manifest_list)),
        "manifest": Path(store.paths.manifest(meta.file_name)),
        "data file": Path(store.physical_files(entry.partition, entry.bucket, entry.file)[0]),
    }


DAMAGES = [
    (kind, damage)
    for kind in ("schema", "snapshot", "manifest list", "manifest", "data file")
    for damage in ("truncated", "overwritten", "missing")
    if (kind, damage) not in {("schema", "missing"), ("snapshot", "missing")}  # then there is no table, or no snapshot
]


@pytest.mark.parametrize(("kind", "damage"), DAMAGES)
@pytest.mark.local_files
def test_a_damaged_file_is_an_error_that_names_it(written, kind, damage) -> None:
    path = metadata_files(written)[kind]
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"\x00garbage" * 50)
    with pytest.raises(CorruptFile) as caught:
        Table.open(written.path).scan().to_arrow()
    assert path.name in str(caught.value)


class FullDisk(LocalFileIO):
    """Storage that is full for whatever ``matches`` the path."""

    matches = staticmethod(lambda path: False)

    def open_output(self, path: str):
        if FullDisk.matches(path):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return super().open_output(path)

    def write(self, path: str, data: bytes, **keywords: bool) -> None:
        if FullDisk.matches(path):
            raise OutOfDisk(errno.ENOSPC, "No space left on device", path)
        super().write(path, data, **keywords)

    def create_exclusive(self, path: str, data: bytes, **options: Any) -> bool:
        if FullDisk.matches(path):
            raise OutOfDisk(errno.ENOSPC, "No space left on device", path)
        return super().create_exclusive(path, data, **options)


@pytest.mark.parametrize("where", ["/bucket-", "/manifest/manifest-list", "/manifest/manifest-", "/snapshot/snapshot-"])
@pytest.mark.local_files
def test_a_full_disk_leaves_the_table_as_it_was(written, monkeypatch, where) -> None:
    from pyspark_paimon.local.engine import LocalEngine

    before = files_below(written.path)
    full = Table(LocalEngine(written.path, file_io=FullDisk()))
    monkeypatch.setattr(FullDisk, "matches", staticmethod(lambda path: where in path))
    for action in (lambda: full.write(pa.table(GOOD)), lambda: full.delete("id = 1"), lambda: full.write(pa.table(GOOD), mode="overwrite")):
        with pytest.raises(OutOfDisk, match=r"[Nn]o space left"):
            action()
        assert files_below(written.path) == before
    monkeypatch.setattr(FullDisk, "matches", staticmethod(lambda path: False))
    assert full.write(pa.table(GOOD)).snapshot_id == 2
    assert full.scan().count() == 3


def test_tables_that_would_be_read_wrong_are_refused(tmp_path) -> None:
    golden = Path(__file__).parents[2] / "golden"
    shutil.copytree(golden / "pk_agg" / "table", tmp_path / "t")
    schema = tmp_path / "t" / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"bool_or"', '"rbm64"'))
    with pytest.raises(UnsupportedTable, match=r"fields.flag.aggregate-function.*rbm64"):
        Table.open(tmp_path / "t").scan().to_arrow()
