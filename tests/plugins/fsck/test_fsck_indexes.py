"""A check of a table names every damage to its indexes: containers that lie, deletion vectors, hash indexes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from fileindex.build.options import FileIndexOptions
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, write_index_container
from lsm.deletion_vectors.writer import DeletionVectorWriter
from manifest.entry.data_file import FileKind, ManifestEntry
from manifest.io.paths import FileNames
from pyspark_paimon import Table
from pyspark_paimon.plugins.fsck.states import LEFT_BEHIND
from pyspark_paimon.results.fsck_problem import ProblemKind as K
from tests.damaged_tables import Case, Damage, Surgeon, check, cut, flip, gone, named

Edit = Callable[[pa.Table], pa.Table]


def _indexed(surgeon: Surgeon) -> tuple[ManifestEntry, Path]:
    """A new file with a side file, and that."""
    entry = next(entry for entry in surgeon.entries() if entry.kind == FileKind.ADD and entry.file.extra_files)
    return entry, surgeon.path_of(entry).with_name(entry.file.extra_files[0])


def _built_from(edit: Edit, *types: str) -> Damage:
    """Indexes of ``types`` (all others stay) built from rows that the file does not have."""

    def damage(surgeon: Surgeon) -> Path:
        entry, sidecar = _indexed(surgeon)
        schema = surgeon.store.schema
        rows = pq.ParquetFile(surgeon.path_of(entry)).read(list(schema.names)).cast(schema.arrow)
        writer = DataFileIndexWriter.create(FileIndexOptions(schema.file_index.specs), schema.column_types)
        assert writer is not None
        writer.write(edit(rows))
        theirs, ours = ContainerReader.of(write_index_container(writer.finish())), ContainerReader.of(sidecar.read_bytes(), sidecar.name)
        chosen = [(theirs if index.index_type in types else ours, index) for index in ours.entries()]
        mixed = [(index.column, index.index_type, _payload(source, index.column, index.index_type)) for source, index in chosen]
        sidecar.write_bytes(write_index_container(mixed))
        return sidecar

    return damage


def _payload(source: ContainerReader, column: str, index_type: str) -> bytes:
    entry = next(entry for entry in source.entries() if (entry.column, entry.index_type) == (column, index_type))
    return source.payload(entry).whole()


def _reversed(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))


def _nulls(rows: pa.Table) -> pa.Table:
    return pa.table({name: pa.nulls(rows.num_rows, rows.schema.field(name).type) for name in rows.schema.names})


def _of_other_rows(surgeon: Surgeon) -> Path:
    return _built_from(lambda rows: rows.slice(1), "bitmap", "bsi", "range-bitmap")(surgeon)


def _vectors(surgeon: Surgeon, marked: dict[str, BitMap], **fields: Any) -> Path:
    """Another deletion-vector file in the place of the first."""
    first, *rest = surgeon.index_entries()
    writer = DeletionVectorWriter(surgeon.store, first.partition, first.bucket, FileNames("index-"))
    (made,) = writer.write(marked)
    surgeon.reindex([type(first).of(made.model_copy(update=fields), first.partition, first.bucket, first.index_type), *rest])
    return Path(writer.path(made.file_name))


def _data_file(surgeon: Surgeon) -> str:
    return (surgeon.index_entries()[0].vectors or ())[0].data_file


def _of_no_file(surgeon: Surgeon) -> Path:
    _vectors(surgeon, {"data-none-0.parquet": BitMap([1]), _data_file(surgeon): BitMap([1])})
    return surgeon.name(surgeon.snapshot.index_manifest or "")


def _cardinality(surgeon: Surgeon) -> Path:
    first, *rest = surgeon.index_entries()
    wrong = tuple(vector.model_copy(update={"cardinality": 99}) for vector in first.vectors or ())
    surgeon.reindex([first.model_copy(update={"vectors": wrong}), *rest])
    return surgeon.index_path(first)


def _twice(surgeon: Surgeon) -> Path:
    first, *rest = surgeon.index_entries()
    other = surgeon.index_path(first).with_name("index-copy-0")
    shutil.copy(surgeon.index_path(first), other)
    return surgeon.reindex([first, first.model_copy(update={"file_name": other.name}), *rest])


def _other_hash(surgeon: Surgeon) -> Path:
    """A hash index without one of its hashes; answers a data file with that key."""
    first, *rest = surgeon.index_entries()
    path = surgeon.index_path(first).with_name("index-other-0")  # a name without checksum
    path.write_bytes(bytes(4) + surgeon.index_path(first).read_bytes()[4:])
    surgeon.reindex([first.model_copy(update={"file_name": path.name}), *rest])
    return surgeon.path_of(next(entry for entry in surgeon.live() if entry.bucket == first.bucket))


def _repeated_hash(surgeon: Surgeon) -> Path:
    first, *rest = surgeon.index_entries()
    data = surgeon.index_path(first).read_bytes()
    path = surgeon.index_path(first).with_name("index-copy-0")
    path.write_bytes(data + data[:4])
    other = {"file_name": path.name, "file_size": len(data) + 4, "row_count": first.row_count + 1}
    surgeon.reindex([first.model_copy(update=other), *rest])
    return path


def _option_off(surgeon: Surgeon) -> Path:
    """The newest schema without the option, as if a bit of its name were another."""
    schema = surgeon.store.schema
    options = {("deletion-vectors.enablee" if name == "deletion-vectors.enabled" else name): text for name, text in schema.options.items()}
    return surgeon.schema(schema.id, options=options)


def _option_altered(surgeon: Surgeon) -> Path:
    """A newer schema without the option, that no snapshot names yet."""
    schema = surgeon.store.schema
    shutil.copy(surgeon.file("schema", f"schema-{schema.id}"), surgeon.file("schema", f"schema-{schema.id + 1}"))
    return surgeon.schema(schema.id + 1, id=schema.id + 1, options={"bucket": schema.options["bucket"]})


def _option_was_off(surgeon: Surgeon) -> Path:
    """The option is back, but the newest commit was made without it."""
    schema = surgeon.store.schema
    shutil.copy(surgeon.file("schema", f"schema-{schema.id}"), surgeon.file("schema", f"schema-{schema.id + 1}"))
    surgeon.schema(schema.id + 1, id=schema.id + 1)
    return surgeon.schema(schema.id, options={"bucket": schema.options["bucket"]})


DAMAGES: dict[str, Case] = {
    "a side file is missing": Case(K.MISSING_FILE, "written", "quick", lambda s: gone(_indexed(s)[1])),
    "a container is cut short": Case(K.FILE_INDEX, "written", "footers", lambda s: cut(_indexed(s)[1], 200)),
    "a container is of another number of rows": Case(K.FILE_INDEX, "written", "footers", _of_other_rows),
    "a bloom filter lies": Case(K.FALSE_INDEX, "written", "deep", _built_from(_nulls, "bloom-filter")),
    "a bitmap lies": Case(K.FALSE_INDEX, "written", "deep", _built_from(_reversed, "bitmap")),
    "a bit-sliced index lies": Case(K.FALSE_INDEX, "written", "deep", _built_from(_reversed, "bsi")),
    "a range bitmap lies": Case(K.FALSE_INDEX, "written", "deep", _built_from(_reversed, "range-bitmap")),
    "a data file has two vectors": Case(K.INDEX_MANIFEST, "vectored", "quick", _twice),
    "a bucket has two hash indexes": Case(K.INDEX_MANIFEST, "dynamic", "quick", _twice),
    "a vector is of no file": Case(K.DELETION_VECTOR, "vectored", "quick", _of_no_file),
    "a vector is damaged": Case(K.DELETION_VECTOR, "vectored", "footers", lambda s: flip(s.index_path(s.index_entries()[0]), -6)),
    "a vector marks a row that is not there": Case(
        K.DELETION_VECTOR, "vectored", "footers", lambda s: _vectors(s, {_data_file(s): BitMap([1, 999])})
    ),
    "vectors are counted wrongly": Case(
        K.DELETION_VECTOR, "vectored", "footers", lambda s: _vectors(s, {_data_file(s): BitMap([1])}, row_count=7)
    ),
    "dead rows are counted wrongly": Case(K.DELETION_VECTOR, "vectored", "footers", _cardinality),
    "vectors without the option": Case(K.SCHEMA, "vectored", "quick", _option_off),
    "vectors of an append table without the option": Case(K.SCHEMA, "marked", "quick", _option_off),
    "vectors and an option that was switched off": Case(K.SCHEMA, "vectored", "quick", _option_altered),
    "vectors that were written without the option": Case(K.SCHEMA, "marked", "quick", _option_was_off),
    "a bucket has no hash index": Case(K.HASH_INDEX, "dynamic", "quick", lambda s: s.reindex(s.index_entries()[1:])),
    "a hash is repeated": Case(K.HASH_INDEX, "dynamic", "footers", _repeated_hash),
    "a key is not in the hash index": Case(K.HASH_INDEX, "dynamic", "deep", _other_hash),
}


@pytest.mark.slow("a bit-sliced index lies")
@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_indexes_are_named(copies, tmp_path, name) -> None:
    check(copies, tmp_path, DAMAGES[name])


def test_an_embedded_index_is_held_against_the_rows(copies, tmp_path) -> None:
    path = copies.copy("branched", tmp_path)
    surgeon = Surgeon(path, 1)
    entry = surgeon.entries()[0]
    assert entry.file.embedded_index is not None
    damaged = bytearray(entry.file.embedded_index)
    damaged[-3] ^= 1
    surgeon = Surgeon(path)
    surgeon.change(lambda _: True, embedded_index=bytes(damaged))
    assert {kind for kind, _ in named(path, "deep")} <= {"file-index", "false-index"}
    assert named(path, "deep")


def test_payloads_with_other_options_are_asked_not_compared(create) -> None:
    table = create(
        options={"file-index.range-bitmap.columns": "n", "file-index.bitmap.columns": "city,n", "file-index.bitmap.n.version": "1"}
    )
    table.write(
        pa.table({"id": range(300), "city": [f"c{i % 40}" for i in range(300)], "n": pa.array([i % 90 for i in range(300)], pa.int32())})
    )
    table.alter_options({"file-index.range-bitmap.n.chunk-size": "32b", "file-index.bitmap.city.index-block-size": "64b"})
    table.rewrite_file_index()
    assert table.fsck("deep").problems == ()


def test_a_vector_of_a_file_that_was_there_before_does_no_harm(copies, tmp_path) -> None:
    """Java leaves it in the index manifest when a full compaction rewrites a single file of the top level."""
    surgeon = Surgeon(copies.copy("vectored", tmp_path))
    first = surgeon.index_entries()[0]
    name = _data_file(surgeon)
    table = Table.open(str(surgeon.root))
    table.compact(full=True)
    surgeon = Surgeon(str(surgeon.root))
    assert name not in {entry.file.file_name for entry in surgeon.live()}
    surgeon.reindex([first])
    result = table.fsck("deep")
    assert result.problems == ()
    assert result.counts[LEFT_BEHIND] == 1


@pytest.mark.parametrize("shape", ["vectored", "marked"])
def test_the_option_may_go_once_no_live_file_has_a_vector(copies, tmp_path, shape) -> None:
    path = copies.copy(shape, tmp_path)
    Table.open(path).compact(full=True)
    _option_altered(Surgeon(path))
    assert Table.open(path).fsck("deep").problems == ()
