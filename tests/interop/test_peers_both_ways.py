"""pypaimon reads what we write and we read what it writes, with every feature it knows; where it refuses, that is asserted.

The rows are those of the golden tables, so the extremes of the types are among them. We write them in three steps (other values under
the same keys, a compaction, the true values with some keys deleted), the peer in two; everybody must read the true rows.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.schema.table_schema import TableSchema
from pyspark_paimon import Table
from tests.golden_rows import ENGINES_VIEW, GOLDEN, golden_rows
from tests.interop.features import OURS_READS, PYPAIMON, READS_OURS, RUST, feature
from tests.interop.peers import Peer, PeerError

FIXTURES = {PYPAIMON: "pypaimon", RUST: "pypaimon_rust"}
REFUSES = "refuses"
CUTS = "cuts nanoseconds when it merges"
NANOSECONDS = re.compile(r'(\.\d{6})\d{3}(Z?")')
DELETED = 5


@dataclass(frozen=True)
class Case:
    """A golden table to be made again; ``refusals``: what a peer answers (a pattern) instead of reading or writing it."""

    golden: str
    features: tuple[str, ...]
    refusals: tuple[tuple[str, str], ...] = ()

    def refusal(self, peer: str) -> str | None:
        return dict(self.refusals).get(peer)

    def outcome(self, peer: str, direction: str) -> str:
        """What the peer does with the table; its refusal of vectors is one of reading: it writes none."""
        if self.refusal(peer) is not None and (direction == READS_OURS or self.golden == "multiset"):
            return REFUSES
        return CUTS if (self.golden, peer, direction) == ("all_types_pk", PYPAIMON, READS_OURS) else "yes"


NO_MULTISET = "Unsupported data type: MULTISET"
CASES = (
    Case("all_types", ("scalar types with their extremes", "ARRAY, MAP, ROW")),
    Case("all_types_pk", ("nanoseconds of timestamps",)),
    Case("edges", ("scalar types with their extremes",)),
    Case("all_null", ("scalar types with their extremes",)),
    Case("multiset", ("MULTISET",), ((PYPAIMON, NO_MULTISET), (RUST, NO_MULTISET))),
    Case("pk_l0", ("primary key, level 0",)),
    Case("pk_full", ("primary key, compacted", "file indexes in sidecars")),
    Case("pk_composite", ("composite and text keys",)),
    Case("pk_thin", ("thin data files",)),
    Case("pk_parts", ("partitions with odd values",)),
    Case("append_parts", ("partitions with odd values",)),
    Case("pk_dynamic", ("dynamic buckets",)),
    Case("pk_dv", ("deletion vectors, 32 bit",)),
    Case("pk_dv_embedded", ("deletion vectors, 32 bit", "file indexes in manifests")),
    Case("pk_dv64", ("deletion vectors, 64 bit",), ((PYPAIMON, "Invalid magic number"),)),
    Case("pk_changelog", ("changelog-producer input",)),
    Case("pk_changelog_lookup", ("changelog-producer lookup",)),
    Case("append_bucketed", ("append, bucketed",)),
    Case("append_compacted", ("append", "append, compacted")),
    Case("append_idx", ("append", "file indexes in sidecars")),
    Case("append_embedded", ("append", "file indexes in manifests")),
    Case("append_bitmap_v1", ("file indexes in manifests",)),
    Case("append_bitmap_v2", ("file indexes in manifests",)),
    Case("append_bsi", ("file indexes in manifests",)),
    Case("append_range_bitmap", ("file indexes in manifests",)),
    Case("append_map", ("file indexes on map keys",)),
    Case("pk_map", ("file indexes on map keys",)),
    Case("codecs", ("append",)),
    Case("stats_none", ("append",)),
)
QUICK = {"all_types_pk", "pk_dv"}


def cases(direction: str) -> list[Any]:
    made = []
    for case in CASES:
        for peer in (PYPAIMON, RUST):
            marks = [feature(name, peer, direction, case.outcome(peer, direction)) for name in case.features]
            slow = [] if case.golden in QUICK else [pytest.mark.interop, pytest.mark.long]
            made.append(pytest.param(case, peer, id=f"{case.golden}-{peer}", marks=[*marks, *slow]))
    return made


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> Peer:
    """The peer whose name is the parameter."""
    return request.getfixturevalue(FIXTURES[request.param])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The directory of a database, as peers want it."""
    made = tmp_path / "peers.db"
    made.mkdir()
    return made


@dataclass(frozen=True)
class Golden:
    """A golden table's newest schema and rows."""

    schema: TableSchema
    fields: dict[str, Any]
    rows: pa.Table

    @classmethod
    def of(cls, name: str, home: Path) -> Golden:
        shutil.copytree(GOLDEN / name / "table", home / "golden")
        table = Table.open(home / "golden")
        text = (home / "golden" / "schema" / f"schema-{table.table_schema.id}").read_text(encoding="utf-8")
        return cls(table.table_schema, json.loads(text), table.scan().to_arrow())

    def others(self) -> pa.Table:
        """Other values under the same keys, but for the last third: each row's other columns are those of its neighbour."""
        rows = self.rows.slice(0, self.changed)
        neighbour = rows.take(pa.array([*range(1, rows.num_rows), 0]))
        keys = {*self.schema.primary_keys, *self.schema.partition_keys}
        changed = pa.table([rows[name] if name in keys else neighbour[name] for name in rows.column_names], schema=rows.schema)
        return pa.concat_tables([changed, self.rows.slice(self.changed)])

    @property
    def changed(self) -> int:
        return self.rows.num_rows * 2 // 3

    def lines(self, rows: pa.Table) -> list[str]:
        """Rows in canonical form, whatever units and widths another Arrow gave them."""
        return golden_rows(rows.select(self.rows.column_names).cast(self.rows.schema), self.schema)


def made_by_us(golden: Golden, path: Path) -> list[str]:
    """Our table of the golden rows in several steps; its rows."""
    keys, partitions, options = golden.schema.primary_keys, golden.schema.partition_keys, golden.schema.options
    columns = ", ".join(f"`{field.name}` {field.type}" for field in golden.schema.fields)
    table = Table.create(path, columns, keys, partitions, options)
    if not keys:
        half = golden.rows.num_rows // 2
        table.write(golden.rows.slice(0, half))
        table.write(golden.rows.slice(half))
        table.compact(full=True)
        return golden.lines(golden.rows)
    table.write(golden.others())
    if options.get("write-only") != "true":
        table.compact(full=True)
    kinds = ["-D"] * DELETED + ["+I"] * (golden.changed - DELETED)
    table.write(golden.rows.slice(0, golden.changed).append_column("_row_kind", pa.array(kinds)))
    return golden.lines(golden.rows.slice(DELETED))


@pytest.mark.parametrize(("case", "peer"), cases(READS_OURS), indirect=["peer"])
@pytest.mark.sampled(2)
def test_the_peer_reads_what_we_wrote(case: Case, peer: Peer, home: Path) -> None:
    golden = Golden.of(case.golden, home)
    expected = made_by_us(golden, home / "t")
    assert golden.lines(Table.open(home / "t").scan().to_arrow()) == expected
    refusal = case.refusal(peer.name)
    if refusal is not None:
        with pytest.raises(PeerError, match=refusal):
            peer.read(home / "t")
        return
    peer.ask("taken_fallbacks")
    found = golden.lines(peer.read(home / "t"))
    if case.outcome(peer.name, READS_OURS) == CUTS:
        assert found != expected
        expected = [NANOSECONDS.sub(r"\g<1>000\2", line) for line in expected]
    assert found == expected
    assert peer.ask("taken_fallbacks") == []


@pytest.mark.parametrize(("case", "peer"), cases(OURS_READS), indirect=["peer"])
@pytest.mark.sampled(2)
def test_we_read_and_compact_what_the_peer_wrote(case: Case, peer: Peer, home: Path) -> None:
    golden = Golden.of(case.golden, home)
    if case.golden == "multiset":
        peer.create(home / "t", golden.fields)
        with pytest.raises(PeerError, match=NO_MULTISET):
            peer.write(home / "t", golden.rows)
        return
    peer.create(home / "t", golden.fields)
    if golden.schema.primary_keys:
        peer.write(home / "t", golden.others())
    peer.write(home / "t", golden.rows)
    table = Table.open(home / "t")
    expected = golden.lines(golden.rows)
    hidden = table.options.get("deletion-vectors.enabled") == "true"
    assert golden.lines(table.scan(options=ENGINES_VIEW).to_arrow()) == ([] if hidden else expected)
    assert golden.lines(table.scan().to_arrow()) == expected
    table.compact(full=True)
    assert golden.lines(table.scan().to_arrow()) == expected
    assert golden.lines(peer.read(home / "t")) == expected


def same_answers(case_name: str, peer: Peer, home: Path) -> int:
    """Filters of the golden plans, read by the peer from a table of ours: as many rows as the engine found."""
    golden = Golden.of(case_name, home)
    made_by_us(golden, home / "t")
    asked = 0
    for plan in json.loads((GOLDEN / case_name / "plans.json").read_text(encoding="utf-8")):
        if plan["filter"] is None or "[" in plan["filter"].get("col", ""):
            continue
        assert peer.read(home / "t", filter=plan["filter"]).num_rows == plan["rows"], plan["filter"]
        asked += 1
    return asked


@pytest.mark.parametrize("name", ["append_idx", "append_embedded", "append_bitmap_v2", "append_bsi", "append_range_bitmap"])
@pytest.mark.parametrize(
    "peer",
    [pytest.param(name, marks=feature("file indexes in sidecars", name, READS_OURS)) for name in (PYPAIMON, RUST)],
    indirect=True,
)
@pytest.mark.interop
@pytest.mark.long
def test_the_peer_finds_rows_by_filters_in_our_indexed_files(name: str, peer: Peer, home: Path) -> None:
    assert same_answers(name, peer, home) >= 5
