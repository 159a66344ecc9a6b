"""The report of a run: a Markdown table beside the peers with the targets, every measurement, and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.bar_charts import Bar, Panel, svg
from benchmarks.contenders.worker import Contender
from benchmarks.figures import Figures
from benchmarks.machine import machine_class
from benchmarks.results import Results, Summary, short
from benchmarks.workloads import BY_NAME, LINES, MIB, Line, Target

OURS, FLOOR = "ours", "floor"
PICTURED = (
    ("write", None), ("upsert", None), ("commits", None), ("compact", None), ("compact_runs", None), ("read_merged", None),
    ("read_compacted", None), ("write_indexed", None), ("append_indexed", None), ("lookup_indexed", "key hit"), ("lookup_indexed", "string miss"),
    ("lookup_indexed", "string hit"), ("lookup_indexed", "two strings"), ("lookup_indexed", "range"), ("plan", "cold, partition"),
)  # fmt: skip
"""The lines that the picture shows."""


@dataclass(frozen=True)
class Cell:
    """A contender's figures for a line; ``plain``: asked where there is no index, as it has none."""

    summary: Summary
    plain: bool = False

    @property
    def text(self) -> str:
        marks = ("b" if self.summary.busy else "") + ("n" if self.plain else "")
        return short(self.summary.median) + (f" ({marks})" if marks else "")


@dataclass
class Report:
    """Of the measurements of one profile."""

    profile: str
    results: Results
    contenders: Mapping[str, Contender]
    excluded_files: Mapping[str, str]
    numbers: Mapping[str, int]
    """Rows of the base, of the upsert and of a small batch, for the titles."""
    commit: str = ""
    figures: Sequence[Figures] = ()

    @property
    def rows(self) -> int:
        return self.numbers["rows"]

    def cell(self, name: str, line: Line) -> Cell | None:
        """What a contender needed for a line."""
        found = self.results.summary(name, line.workload, line.query)
        if found is None and line.other is not None:
            found = self.results.summary(name, line.other, line.query)
            return None if found is None else Cell(found, plain=True)
        return None if found is None else Cell(found)

    def floor_of(self, line: Line) -> Summary | None:
        """What the floor needed for the same work."""
        workload = BY_NAME[line.workload].floor or line.workload
        cell = self.cell(FLOOR, Line(workload, line.query, "", (), line.other))
        return None if cell is None else cell.summary

    def title(self, line: Line) -> str:
        """A line's name in this run."""
        return line.title.format(**{name: f"{number:,}" for name, number in self.numbers.items()})

    def shown(self) -> list[Line]:
        """Lines that anyone has figures for."""
        return [line for line in LINES if any(self.cell(name, line) is not None for name in self.contenders)]

    def main_table(self) -> Figures:
        """A line a workload, a column a contender, and what is demanded of ours."""
        tried = {one.contender for one in self.results.records} - {FLOOR, OURS}
        others = [name for name in self.contenders if name in tried]
        columns = [
            "",
            "floor",
            "ours",
            "first touch",
            "processor",
            "x floor",
            "spread",
            "growth",
            *(self.contenders[name].title for name in others),
            "ours: at most",
            "met",
        ]
        rows = []
        for line in self.shown():
            ours, floor = self.cell(OURS, line), self.floor_of(line)
            ratio = f"{ours.summary.median / floor.median:.2f}" if ours and floor and floor.median else ""
            spread = ours.summary.spread if ours else ""
            growth = f"{ours.summary.growth // MIB} MiB" if ours and line.query is None else ""
            verdicts = [self.verdict(line, target) for target in line.targets]
            rows.append(
                [
                    self.title(line),
                    short(floor.median) if floor else "",
                    ours.text if ours else self._missing(OURS, line),
                    short(ours.summary.first) if ours and ours.summary.first is not None else "",
                    short(ours.summary.cpu) if ours else "",
                    ratio,
                    spread,
                    growth,
                    *(found.text if (found := self.cell(name, line)) else self._missing(name, line) for name in others),
                    "; ".join(text for text, _ in verdicts),
                    "; ".join(met for _, met in verdicts),
                ]
            )
        return Figures(f"{self.rows:,} rows, {self.profile}", columns, rows)

    def _missing(self, name: str, line: Line) -> str:
        return "failed" if self.results.failure(name, line.workload) else "-"

    def verdict(self, line: Line, target: Target) -> tuple[str, str]:
        """The target in words, and whether ours meets it in this run; empty where it cannot be told."""
        ours = self.cell(OURS, line)
        if target.growth:
            text = f"growth {target.at_most:g} MiB"
            return text, "" if ours is None else _met(ours.summary.growth / MIB / target.at_most)
        if target.contender is None:
            return short(target.at_most), "" if ours is None else _met(ours.summary.median / target.at_most)
        workload, _, query = (target.workload or "").partition(":")
        other = Line(workload, query or None, "") if target.workload else Line(line.workload, line.query, "", (), line.other)
        theirs = self.cell(target.contender, other)
        name = (
            "own without index"
            if target.contender == OURS
            else self.contenders[target.contender].title
            if target.contender in self.contenders
            else target.contender
        )
        text = f"{target.at_most:g} x {name}"
        return text, "" if ours is None or theirs is None else _met(ours.summary.median / theirs.summary.median / target.at_most)

    def detail_table(self) -> Figures:
        """Every contender's median, range, processor time and memory."""
        rows = []
        for line in self.shown():
            for name, contender in self.contenders.items():
                cell, floor = self.cell(name, line), self.floor_of(line)
                if cell is None or cell.plain:
                    continue
                one = cell.summary
                ratio = f"{one.median / floor.median:.2f}" if floor and floor.median else ""
                memory = [f"{one.growth // MIB}", f"{one.peak // MIB}"] if line.query is None else ["", ""]
                first = "" if one.first is None else short(one.first)
                rows.append([self.title(line), contender.title, short(one.median), one.spread, first, ratio, short(one.cpu), *memory])
        columns = ["work", "contender", "median", "range", "first touch", "x floor", "processor", "growth MiB", "peak MiB"]
        return Figures("All measurements", columns, rows)

    def picture(self) -> str:
        """Ratios to the floor as SVG."""
        panels = []
        for workload, query in PICTURED:
            line = next(each for each in LINES if (each.workload, each.query) == (workload, query))
            floor = self.floor_of(line)
            bars = [
                Bar(_short_name(name), cell.summary.median / floor.median, short(cell.summary.median), ours=name == OURS)
                for name in self.contenders
                if name not in {FLOOR, "ours_without_fsync"}
                and floor is not None
                and floor.median
                and (cell := self.cell(name, line)) is not None
            ]
            if floor is not None and bars:
                panels.append(Panel(self.title(line), short(floor.median), tuple(bars)))
        return svg(panels, title=f"{self.rows:,} rows of TPC-H lineitem beside the peers")

    def about(self) -> str:
        """When, on what, with which versions."""
        day = max((one.at for one in self.results.records), default="")[:10] or datetime.now(UTC).date().isoformat()
        versions: dict[str, str] = {}
        for found in self.results.versions().values():
            versions.update({name: version for name, version in found.items() if name != "pyarrow"})
        arrow = sorted({found["pyarrow"] for found in self.results.versions().values() if "pyarrow" in found})
        packages = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
        return f"{day}, {machine_class()}; {packages}; pyarrow {', '.join(arrow)}; this project at {self.commit}."

    def notes(self) -> Iterator[str]:
        """What a reader of the tables has to know."""
        yield (
            "Floor: pyarrow and numpy doing the same work naively (sort, take, Parquet; read, sort, keep the last, write). Each step runs in a fresh "
            "process with two threads, its inputs in memory before the clock starts; every answer was checked against "
            "pyarrow's before its time counts. Reads are done once before, unmeasured: imports, and memory that the host of a virtual "
            "machine has yet to give, would count else. Every lookup is asked twice: *first touch* is the first time, all other figures are the second."
        )
        yield "Median of the rounds; `x1`: one round. (b): other processes kept more than 0.3 cores busy. (n): no index, since it has none."
        tried = {one.contender for one in self.results.records}
        for name, contender in self.contenders.items():
            if name not in tried:
                continue
            if contender.note:
                yield f"{contender.title}: {contender.note}."
            if contender.compacted_by not in {None, name}:
                yield f"{contender.title}: reads tables that {contender.compacted_by} compacted, as it cannot."
        for name, reason in self.excluded_files.items():
            yield f"{self.contenders[name].title} is left out: {reason}."
        for one in self.results.records:
            if one.failed:
                yield f"{self.contenders[one.contender].title if one.contender in self.contenders else one.contender}, {one.workload}, failed: {one.failed}"

    def lacking(self) -> Iterator[str]:
        """Why cells are empty."""
        tried = {one.contender for one in self.results.records}
        for name, contender in self.contenders.items():
            if contender.lacks and name in tried:
                reasons: dict[str, list[str]] = {}
                for what, why in contender.lacks.items():
                    reasons.setdefault(why, []).append(what)
                yield f"{contender.title} lacks " + "; ".join(f"{', '.join(what)}: {why}" for why, what in reasons.items()) + "."

    def markdown(self, picture: str | None = None) -> str:
        """The whole report."""
        parts = ["# Benchmarks", self.about(), self.main_table().markdown()]
        if picture is not None:
            parts.append(f"![Ratio to the floor]({picture})")
        parts += ["\n".join(f"* {note}" for note in [*self.notes(), *self.lacking()]), self.detail_table().markdown()]
        parts += [each.markdown() for each in self.figures]
        return "\n\n".join(parts) + "\n"


def _met(share: float) -> str:
    return f"yes ({share:.2f})" if share <= 1 else f"**no** ({share:.2f})"


def _short_name(name: str) -> str:
    return {"paimon_java": "Paimon Java", "pypaimon_rust": "pypaimon + rust"}.get(name, name)


__all__ = ["Report"]
