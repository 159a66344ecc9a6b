"""What the scaling runs found: tables, and two pictures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import Figures
from benchmarks.line_charts import Chart, svg
from benchmarks.results import short

MIB = 1 << 20
STEPS = ("write", "upsert", "merged read", "full compaction", "read, compacted")
QUERIES = ("key lookup, hit", "key lookup, miss", "plan")
COUNTED = (
    ("live files", "live files", 1),
    ("live manifest bytes", "live manifests, KiB", 1 << 10),
    ("metadata bytes", "metadata on disk, KiB", 1 << 10),
    ("data files", "data files on disk", 1),
    ("data bytes", "data on disk, MiB", MIB),
)


def publish(results: Mapping[str, Any], folder: Path) -> str:
    """Write ``scaling.md`` and the pictures; the text."""
    pictures = {}
    if results["rows"]:
        pictures["scaling-rows.svg"] = _rows_picture(results["rows"])
    if results["commits"]:
        pictures["scaling-commits.svg"] = _commits_picture(results["commits"])
    for name, text in pictures.items():
        (folder / name).write_text(text, encoding="utf-8")
    shrunk = " A hundredth of the rows and a tenth of the commits: no figures to quote." if results["quick"] else ""
    parts = [f"{results['machine']}.{shrunk}\n"]
    parts += [each.markdown() for each in (*_sizes(results["rows"]), *_commits(results["commits"]))]
    parts += [f"![{name.removesuffix('.svg')}]({name})\n" for name in pictures]
    text = "\n".join(parts)
    (folder / "scaling.md").write_text(text, encoding="utf-8")
    return text


def _median(noted: Mapping[str, Any], what: str = "seconds") -> float:
    return float(statistics.median(noted[what]))


def _sizes(rows: Mapping[str, Any]) -> list[Figures]:
    """Seconds, those per million rows, and growth of memory, for every size."""
    if not rows:
        return []
    sizes = [(found["rows"], found) for found in rows.values()]
    heads = [f"{count:,} rows" for count, _ in sizes]
    lines = [_line("decoding the inputs", [found["floor"].get("decode inputs") for _, found in sizes], [count for count, _ in sizes])]
    for who, title in (("ours", ""), ("floor", "floor: ")):
        lines += [_line(f"{title}{name}", [found[who].get(name) for _, found in sizes], [count for count, _ in sizes]) for name in STEPS]
    for name in QUERIES:
        noted = [found["ours"].get(name) for _, found in sizes]
        lines.append([name, *(short(_median(each)) if each else "-" for each in noted)])
    title = "Cost as the table grows: seconds, seconds for a million rows, peak growth of memory in MiB"
    return [Figures(title, ["work", *heads], lines)]


def _line(name: str, noted: Sequence[Mapping[str, Any] | None], counts: Sequence[int]) -> list[str]:
    cells = []
    for each, count in zip(noted, counts, strict=True):
        if each is None:
            cells.append("-")
            continue
        seconds = _median(each)
        growth = max(each["growth"]) / MIB
        cells.append(f"{short(seconds)} · {seconds / count * 1e6:.2f} · {growth:,.0f}")
    return [name, *cells]


def _commits(commits: Mapping[str, Any]) -> list[Figures]:
    """For every way of committing a table with a column for each count."""
    found = []
    for name, run in commits.items():
        counts = list(run["points"])
        lines = [
            ["a commit, median of the stretch", *_stretches(run, "seconds", counts)],
            ["a commit, seconds of processors", *_stretches(run, "cpu", counts)],
            ["writer's memory at the end, MiB", *(_resident(run, int(count)) for count in counts)],
        ]
        asked = ("plan", "key lookup, hit", "merged read")
        lines += [[query, *(short(_median(run["points"][count][query])) for count in counts)] for query in asked]
        lines.append(
            ["merged read, growth in MiB", *(f"{max(run['points'][count]['merged read']['growth']) / MIB:,.0f}" for count in counts)]
        )
        for what, title, unit in COUNTED:
            lines.append([title, *(f"{run['points'][count]['state'][what] / unit:,.0f}" for count in counts)])
        title = f"Cost as commits grow, {name}: each replaces {run['size']:,} of {run['rows']:,} rows"
        found.append(Figures(title, ["after so many commits", *(f"{int(count):,}" for count in counts)], lines))
    return found


def _stretches(run: Mapping[str, Any], what: str, counts: Sequence[str]) -> list[str]:
    cells, start = [], 0
    for count in map(int, counts):
        part = run[what][start:count]
        cells.append(short(float(statistics.median(part))) if part else "-")
        start = count
    return cells


def _resident(run: Mapping[str, Any], count: int) -> str:
    return f"{run['resident'][count - 1] / MIB:,.0f}" if count else "-"


def _rows_picture(rows: Mapping[str, Any]) -> str:
    """Seconds for a million rows and growth of memory over the size: flat lines are what is wanted."""
    sizes = [found["rows"] / 1e6 for found in rows.values()]
    pace = {name: [_median(found["ours"][name]) / found["rows"] * 1e6 for found in rows.values()] for name in STEPS}
    growth = {name: [max(found["ours"][name]["growth"]) / MIB for found in rows.values()] for name in STEPS}
    asked = {name: [_median(found["ours"][name]) * 1000 for found in rows.values()] for name in QUERIES}
    charts = [
        Chart("seconds for a million rows", pace, sizes),
        Chart("growth of memory, MiB", growth, sizes),
        Chart("lookups and plan, ms", asked, sizes),
    ]
    return svg(charts, x_label="million rows")


def _commits_picture(commits: Mapping[str, Any]) -> str:
    """Every commit's time and the writer's memory, and what readers meet."""
    counts = next([float(count) for count in run["points"]] for run in commits.values())
    same = {name: run for name, run in commits.items() if [float(count) for count in run["points"]] == counts}

    def asked(query: str) -> dict[str, list[float]]:
        return {name: [_median(run["points"][count][query]) * 1000 for count in run["points"]] for name, run in same.items()}

    charts = [
        Chart("a commit, seconds of processors", {name: run["cpu"] for name, run in commits.items()}),
        Chart("the writer's memory, MiB", {name: [each / MIB for each in run["resident"]] for name, run in commits.items()}),
        Chart("plan, ms", asked("plan"), counts),
        Chart("merged read, ms", asked("merged read"), counts),
    ]
    return svg(charts, x_label="commits")


__all__ = ["publish"]
