"""Statistics of the golden tables: the engine's decode to what it lists, and ours of the same rows are the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lsm.parquet.write.writer import ParquetFileWriter
from manifest.entry.data_file import ManifestEntry
from manifest.io.file_io import LocalFileIO
from manifest.stats.collector import StatsCollector
from manifest.stats.column_stats import SimpleStats, decode_bounds
from manifest.store import FileStore
from manifest.types.data_type import DataField, DataType
from sparkexpr.values.column_type import FLOATS, TIMESTAMPS, Plain
from sparkexpr.values.plain_value import to_scalar
from tests.golden_rows import GOLDEN, to_golden

TABLES = sorted(path.parent.name for path in GOLDEN.glob("*/table"))


def live_files(name: str) -> Iterator[tuple[FileStore, ManifestEntry, dict[str, Any]]]:
    store = FileStore.open(GOLDEN / name / "table")
    listed = {file["file"]: file for file in json.loads((GOLDEN / name / "files.json").read_text())}
    for entry in store.live_entries(store.snapshots.latest()).entries():
        yield store, entry, listed[entry.file.file_name]


def shown(value: Plain, data_type: DataType) -> Any:
    if value is None:
        return None
    return to_golden(to_scalar(value, data_type.column_type), data_type)


def decoded(stats: SimpleStats, fields: list[DataField], row_count: int) -> dict[str, dict[str, Any]]:
    bounds = decode_bounds(stats, [field.name for field in fields], [field.type for field in fields], row_count)
    return {
        field.name: {
            "min": shown(bounds[field.name].min, field.type),
            "max": shown(bounds[field.name].max, field.type),
            "nulls": bounds[field.name].null_count,
        }
        for field in fields
    }


def rounded(listed: dict[str, Any], fields: list[DataField]) -> dict[str, Any]:
    """FLOAT bounds as 32-bit numbers; the listing spells them shorter than a double does."""
    floats = {field.name: field.type for field in fields if field.type.kind in FLOATS}

    def bound(name: str, value: Any) -> Any:
        if name not in floats or not isinstance(value, float):
            return value
        return to_golden(to_scalar(value, floats[name].column_type), floats[name])

    return {name: {part: bound(name, value) for part, value in stats.items()} for name, stats in listed.items()}


@pytest.mark.parametrize("name", TABLES)
def test_the_engines_statistics_decode_to_what_it_lists(name: str) -> None:
    for store, entry, listed in live_files(name):
        file, schema = entry.file, store.schemas.get(entry.file.schema_id)
        covered = schema.names if file.value_stats_cols is None else file.value_stats_cols
        fields = [schema.field(column) for column in covered]
        assert decoded(file.value_stats, fields, file.row_count) == rounded(listed["valueStats"], fields)
        if listed["keyStats"] is not None:
            keys = [schema.field(column) for column in schema.trimmed_primary_keys]
            assert decoded(file.key_stats, keys, file.row_count) == rounded(listed["keyStats"], keys)


@pytest.mark.sizes
@pytest.mark.parametrize("name", TABLES)
def test_statistics_that_we_collect_of_the_engines_rows_are_the_engines_bytes(name: str, tmp_path: Path) -> None:
    for store, entry, _ in live_files(name):
        file, schema = entry.file, store.schemas.get(entry.file.schema_id)
        if file.format != "parquet":
            continue  # of their own tests
        source = store.physical_files(entry.partition, entry.bucket, file)[0]
        with pa.OSFile(source) as opened:
            rows = pq.read_table(opened)
        collector = StatsCollector(schema.fields, schema.core.stats_modes(schema.names, file.level), dense=schema.core.stats_dense_store)
        collector.update(rows)
        fine = any(field.type.kind in TIMESTAMPS and field.type.precision > 6 for field in schema.fields)
        writer = ParquetFileWriter(LocalFileIO(), str(tmp_path / file.file_name), rows.schema, int96=fine)
        writer.write(rows)
        footer, _ = writer.close()
        stats, columns = collector.value_stats(footer)
        assert columns == file.value_stats_cols
        fields = list(schema.fields) if columns is None else [schema.field(column) for column in columns]
        assert without_fine_timestamps(stats, fields, file.row_count) == without_fine_timestamps(file.value_stats, fields, file.row_count)
        if not any(field.type.kind in TIMESTAMPS and field.type.precision > 6 for field in fields):
            assert stats == file.value_stats
        if schema.primary_keys:
            prefix = "" if schema.core.data_file_thin_mode else "_KEY_"
            assert collector.key_stats(footer, schema.trimmed_primary_keys, prefix) == file.key_stats


def without_fine_timestamps(stats: SimpleStats, fields: list[DataField], row_count: int) -> dict[str, Any]:
    """Bounds but those of timestamps finer than microseconds, which the engine does not collect and we do."""
    found = decoded(stats, fields, row_count)
    for field in fields:
        if field.type.kind in TIMESTAMPS and field.type.precision > 6:
            found[field.name] |= {"min": None, "max": None}
    return found
