"""Golden tables whose rows lie in several files (data evolution): pypaimon writes them, the Java engine tells their rows.

    python -m tests.interop.evolved_tables                # all, into tests/golden_evolved
    python -m tests.interop.evolved_tables --into /tmp/g

This file also runs by itself in the peer's environment, which has none of this project's packages.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = Path(__file__).parent.parent / "golden_evolved"
TABLES = ("updated", "added", "partitioned", "indexed", "deleted", "blobs")
OF_NEWER_ENGINES = frozenset({"deleted"})
"""Tables of a kind that the Java engine of the other golden tables refuses: their rows are those that the writer reads."""


def _written(warehouse: Path) -> None:
    """Write the tables below ``warehouse``, and the rows that the writer reads beside each."""
    import pyarrow as pa  # the peer's
    from pypaimon import CatalogFactory, Schema  # as above
    from pypaimon.schema.data_types import AtomicType  # as above
    from pypaimon.schema.schema_change import SchemaChange  # as above

    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db", True)

    def made(name, schema, partition_keys=None, **options):
        every = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
        every |= {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        catalog.create_table(f"db.{name}", Schema.from_pyarrow_schema(schema, partition_keys=partition_keys, options=every), False)
        return catalog.get_table(f"db.{name}")

    def committed(table, messages_of):
        builder = table.new_batch_write_builder()
        messages = messages_of(builder)
        commit = builder.new_commit()
        commit.commit(messages)
        commit.close()

    def append(table, columns, schema):
        def messages_of(builder):
            write = builder.new_write()
            write.write_arrow(pa.table(columns, schema=schema))
            messages = write.prepare_commit()
            write.close()
            return messages

        committed(table, messages_of)

    def update(table, column, values, assigned):
        def messages_of(builder):
            changing = builder.new_update()
            return changing.update_by_predicate(changing.new_predicate_builder().is_in(column, values), assigned)

        committed(table, messages_of)

    def delete(table, column, values):
        def messages_of(builder):
            changing = builder.new_update()
            return changing.delete_by_predicate(changing.new_predicate_builder().is_in(column, values))

        committed(table, messages_of)

    plain = pa.schema([("id", pa.int32()), ("n", pa.int32()), ("s", pa.string())])

    def numbered(first, count):
        ids = list(range(first, first + count))
        return {"id": ids, "n": [i % 7 for i in ids], "s": [None if i % 5 == 0 else f"s{i}" for i in ids]}

    table = made("updated", plain)
    append(table, numbered(0, 500), plain)
    append(table, numbered(500, 300), plain)
    update(table, "id", [1, 2, 600], {"n": 777})
    update(table, "id", [5], {"s": "five"})
    append(table, numbered(800, 3), plain)
    update(table, "id", [1], {"n": -1})

    table = made("added", plain)
    append(table, numbered(0, 4), plain)
    catalog.alter_table("db.added", [SchemaChange.add_column("d", AtomicType("DOUBLE"))], False)
    table = catalog.get_table("db.added")
    append(table, {**numbered(4, 2), "d": [1.5, None]}, plain.append(pa.field("d", pa.float64())))
    update(table, "id", [2], {"d": 2.5})
    catalog.alter_table("db.added", [SchemaChange.rename_column("n", "number"), SchemaChange.drop_column("s")], False)

    parted = pa.schema([("id", pa.int32()), ("v", pa.int64()), ("p", pa.string())])
    table = made("partitioned", parted, partition_keys=["p"])
    append(table, {"id": [1, 2, 3, 4], "v": [1, 2, 3, 4], "p": ["a", "b", "a", "b"]}, parted)
    update(table, "id", [3], {"v": 33})

    table = made("indexed", plain, file_index__bloom_filter__columns="s", file_index__bitmap__columns="n")
    append(table, numbered(0, 100), plain)
    update(table, "id", [7], {"s": "seven"})
    append(table, numbered(100, 100), plain)

    table = made("deleted", plain, deletion_vectors__enabled="true")
    append(table, numbered(0, 50), plain)
    append(table, numbered(50, 50), plain)
    update(table, "id", [7, 8], {"s": "seven"})
    delete(table, "id", [7, 9, 70])

    pictures = pa.schema([("id", pa.int32()), ("p", pa.large_binary()), ("q", pa.large_binary())])
    table = made("blobs", pictures, blob__target_file_size="1 kb")
    values = [None, b"", b"\x00\xff", *(bytes([i]) * 300 for i in range(9))]
    append(table, {"id": list(range(12)), "p": values, "q": [bytes([i]) for i in range(12)]}, pictures)
    append(table, {"id": [12], "p": [b"last"], "q": [None]}, pictures)

    for name in TABLES:
        builder = catalog.get_table(f"db.{name}").new_read_builder()
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
        lines = [json.dumps({key: value.hex() if isinstance(value, bytes) else value for key, value in row.items()}) for row in rows]
        (warehouse / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


def update(table_path: Path, column: str, values: list[object], assigned: dict[str, object]) -> None:
    """Have the peer write new values of some columns into files of their own."""
    from tests.interop.peers import PYPAIMON, environment  # as below

    asked = json.dumps([column, values, assigned])
    subprocess.run([environment(PYPAIMON), str(Path(__file__).resolve()), "--update", str(table_path), asked], check=True)


def _update(path: Path, column: str, values: list[object], assigned: dict[str, object]) -> None:
    from pypaimon import CatalogFactory  # the peer's

    name = f"{path.parent.name.removesuffix('.db')}.{path.name}"
    builder = CatalogFactory.create({"warehouse": str(path.parent.parent)}).get_table(name).new_batch_write_builder()
    changing = builder.new_update()
    messages = changing.update_by_predicate(changing.new_predicate_builder().is_in(column, values), assigned)
    commit = builder.new_commit()
    commit.commit(messages)
    commit.close()


def main() -> None:
    """Make them anew."""
    from tests.interop.engine import Engine  # this file is read by the peer's interpreter, too
    from tests.interop.peers import PYPAIMON, environment  # as above

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=HOME)
    into = parser.parse_args().into
    with tempfile.TemporaryDirectory() as scratch:
        python = environment(PYPAIMON, make=True)
        subprocess.run([python, str(Path(__file__).resolve()), "--make", scratch], check=True)
        engine = Engine.start()
        for name in TABLES:
            made = Path(scratch) / "db.db" / name
            told = (Path(scratch) / f"{name}.jsonl").read_text(encoding="utf-8")
            if name not in OF_NEWER_ENGINES | {"blobs"}:
                rows = sorted(json.dumps(row) for row in engine.dump(made))
                assert rows == told.splitlines(), f"{name}: the two engines read other rows"
            shutil.rmtree(into / name, ignore_errors=True)
            shutil.copytree(made, into / name / "table")
            (into / name / "expected.jsonl").write_text(told, encoding="utf-8")
            if name not in OF_NEWER_ENGINES | {"blobs"}:
                (into / name / "row_tracking.json").write_text(json.dumps(engine.system(made, "row_tracking")), encoding="utf-8")
        engine.stop()
    sys.stdout.write(f"{', '.join(TABLES)}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        _written(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--update"]:
        _update(Path(sys.argv[2]), *json.loads(sys.argv[3]))
    else:
        main()
