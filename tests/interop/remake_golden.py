"""Makes the golden tables anew with Paimon's engine: ``python -m tests.interop.remake_golden [--into DIRECTORY] [--system] [TABLE ...]``.

For each table of ``specs_golden``: the table, and what the engine reads, lists and plans of it, in the form that ``tests/golden/README.md``
describes. Rows are drawn from fixed seeds, names and times are new each time, so no two runs give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manifest.store import FileStore
from tests.golden_rows import GOLDEN as HOME
from tests.interop.agreement import Filter, made_leaf
from tests.interop.engine import Engine
from tests.interop.players import made_by_java
from tests.interop.specs import Spec
from tests.interop.specs_golden import GOLDEN

LEAVES = 14
ALWAYS: Mapping[str, list[Filter]] = {"append_idx": [{"op": "=", "col": "flag", "value": True}]}
SYSTEM: Mapping[str, tuple[str, ...]] = {
    "all_types_pk": (),
    "append_parts": (),
    "evolved": ("audit_log",),
    "pk_agg_retract": (),
    "pk_dv": ("audit_log", "ro"),
    "pk_mixed": ("audit_log", "binlog", "ro"),
    "pk_partial_remove": ("audit_log", "ro"),
    "stats_none": (),
    "tagged": (),
}
"""Tables whose system tables are kept, too: those of the kinds that differ there, and which of the tables of rows."""
OF_ROWS = frozenset({"audit_log", "binlog", "ro", "row_tracking"})
CHANGELOG = {"incremental-between-scan-mode": "changelog"}


def remade(engine: Engine, spec: Spec, home: Path) -> dict[str, Any]:
    """Make one table below ``home`` with everything beside it; its line of ``tables.json``."""
    path = made_by_java(engine, spec, home / "table")
    rows = engine.dump(path)
    snapshots = engine.snapshots(path)
    files = engine.files(path)
    _write_lines(home / "expected.jsonl", rows)
    _write(home / "files.json", [{name: value for name, value in file.items() if name != "embeddedIndex"} for file in files])
    _write(home / "plans.json", [planned(engine, path, form) for form in [None, *filters(spec, path, rows)]])
    _write(home / "snapshots.json", [seen(engine, path, snapshot) for snapshot in snapshots])
    if spec.name == "tagged":
        _write_lines(home / "expected-v1.jsonl", engine.dump(path, options={"scan.tag-name": "v1"}))
    if "changelog-producer" in spec.options:
        between = {"incremental-between": f"0,{snapshots[-1]['id']}", **CHANGELOG}
        _write_lines(home / "expected-changelog.jsonl", engine.dump(path, options=between, kinds=True))
    if spec.name in SYSTEM:
        _write_system(home, engine, SYSTEM[spec.name])
    return {"table": spec.name, "shows": spec.shows, "rows": len(rows), "files": len(files), "options": dict(spec.options)}


def _write_system(home: Path, engine: Engine, of_rows: Sequence[str]) -> None:
    """Columns and rows of the table's system tables, of those of its rows only the ones that are named; paths begin at the table."""
    lines = []
    path = home / "table"
    for name in engine.ask("system_tables", path):
        if name in OF_ROWS and name not in of_rows:
            continue
        answer = engine.system(path, name)
        for row in answer["rows"]:
            if "file_path" in row:
                row["file_path"] = row["file_path"].removeprefix(f"{path.resolve()}/")
        found = {"columns": answer["columns"], "rows": answer["rows"]}
        lines.append(f"{json.dumps(name)}: {json.dumps(found, ensure_ascii=False, separators=(',', ':'))}")
    (home / "system.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


def filters(spec: Spec, path: Path, rows: list[dict[str, Any]]) -> list[Filter]:
    """Single conditions on values that the table has, and some joined."""
    draw = random.Random(f"filters of {spec.name}")
    schema = FileStore.open(str(path)).schema
    leaves = [*ALWAYS.get(spec.name, ()), *(made_leaf(draw, rows, schema, spec.unasked) for _ in range(LEAVES))]
    joined = [{"op": op, "args": draw.sample(leaves, 2)} for op in ("and", "or", "and")]
    return [*leaves, *joined]


def planned(engine: Engine, path: Path, form: Filter | None) -> dict[str, Any]:
    """How the engine answers a filter: how many rows, from which files, by which indexes."""
    answers = [] if form is None else engine.index_eval(path, form)
    return {
        "filter": form,
        "rows": len(engine.dump(path, form)),
        "raw_rows": engine.raw(path, form),
        "splits": engine.plan(path, form),
        "index_eval": [{name: value for name, value in answer.items() if name != "positions"} for answer in answers] or None,
    }


def seen(engine: Engine, path: Path, snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot, and how many rows a reader of it gets."""
    rows = len(engine.dump(path, options={"scan.snapshot-id": str(snapshot["id"])}))
    return {"snapshot": snapshot["id"], "kind": snapshot["commitKind"], "totalRecordCount": snapshot["totalRecordCount"], "rows": rows}


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    lines = sorted(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Make the tables asked for, or all; a table is replaced when all of it is made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--into", type=Path, default=HOME, help="where the tables go (default: %(default)s)")
    parser.add_argument("--system", action="store_true", help="only ask anew for the system tables of those that are there")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="names of tables (default: all)")
    chosen = parser.parse_args(arguments)
    specs = {spec.name: spec for spec in GOLDEN}
    unknown = sorted({*chosen.tables} - {*specs})
    if unknown:
        parser.error(f"no such table: {', '.join(unknown)}")
    chosen.into.mkdir(parents=True, exist_ok=True)
    listing = chosen.into / "tables.json"
    known = {line["table"]: line for line in json.loads(listing.read_text(encoding="utf-8"))} if listing.exists() else {}
    engine = Engine.start()
    if chosen.system:
        for name in sorted({*SYSTEM} & {*(chosen.tables or SYSTEM)}):
            _write_system(chosen.into / name, engine, SYSTEM[name])
        engine.stop()
        return
    try:
        for name in chosen.tables or specs:
            with tempfile.TemporaryDirectory(dir=chosen.into) as scratch:
                (new := Path(scratch) / name).mkdir()
                known[name] = remade(engine, specs[name], new)
                shutil.rmtree(chosen.into / name, ignore_errors=True)
                new.rename(chosen.into / name)
            sys.stdout.write(f"{name}: {known[name]['rows']} rows, {known[name]['files']} files\n")
    finally:
        engine.stop()
    _write(listing, [known[name] for name in specs if name in known])


if __name__ == "__main__":
    main(sys.argv[1:])
