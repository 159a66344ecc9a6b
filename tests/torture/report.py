"""What a try of the torture found, and the table of many: part x configuration, tried and wrong."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

GOOD = ("right", "typed error", "excused")
BAD = ("wrong rows", "abort", "hang", "untyped error", "broken table", "lost", "twice")
VERDICTS = GOOD + BAD
CASE = "case.json"


@dataclass(frozen=True)
class Outcome:
    """One try: ``what`` was done to which ``configuration``, the verdict, and for a bad one the folder that replays it."""

    part: str
    configuration: str
    seed: int
    what: str
    verdict: str
    detail: str = ""
    files: Path | None = None
    place: tuple[int, int] | None = None
    """Of a part with a plan: which of so many points of the configuration it was."""

    def __post_init__(self) -> None:
        assert self.verdict in VERDICTS, self.verdict

    @property
    def good(self) -> bool:
        return self.verdict in GOOD

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "files": None if self.files is None else str(self.files)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Outcome:
        files, place = found["files"], found["place"]
        return cls(**{**found, "files": files and Path(files), "place": place and tuple(place)})


def leave_case(folder: Path, part: str, **case: Any) -> Path:
    """Write down in ``folder`` what is needed to run a try again."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CASE).write_text(json.dumps({"part": part, **case}, indent=1, default=str))
    return folder


def case_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / CASE).read_text())
    return found


def replay_command(folder: Path) -> str:
    return f"{shlex.quote(sys.executable)} -m tests.torture --replay {shlex.quote(str(folder))}"


@dataclass
class Tally:
    """Counts of outcomes by part and configuration, and the points of plans that were tried."""

    counts: defaultdict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    bad: list[Outcome] = field(default_factory=list)
    places: defaultdict[tuple[str, str], set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome.part, outcome.configuration][outcome.verdict] += 1
        if outcome.place is not None:
            self.places[outcome.part, outcome.configuration].add(outcome.place)
        if not outcome.good:
            self.bad.append(outcome)

    def total(self) -> Counter[str]:
        return sum(self.counts.values(), Counter())

    def rows(self) -> list[list[str]]:
        """Part, configuration, tried, points of its plan, a count for each verdict that is good or was found; the sum of each part and of all."""
        found = self.total()
        verdicts = [verdict for verdict in VERDICTS if verdict in GOOD[:2] or found[verdict]]
        lines: list[list[str]] = [["part", "configuration", "tried", "of its plan", *verdicts]]
        parts = list(dict.fromkeys(part for part, _ in sorted(self.counts)))
        for part in parts:
            mine = {configuration: counts for (owner, configuration), counts in sorted(self.counts.items()) if owner == part}
            plans = {configuration: self.places[part, configuration] for configuration in mine}
            lines += [_line(part, configuration, counts, plans[configuration], verdicts) for configuration, counts in mine.items()]
            lines.append(_line(part, "all", sum(mine.values(), Counter()), (), verdicts))
        return [*lines, _line("all", "", found, (), verdicts)]

    def to_json(self) -> dict[str, Any]:
        figures = [
            {
                "part": part,
                "configuration": configuration,
                "tried": counts.total(),
                "of its plan": _share(self.places[part, configuration]),
                **counts,
            }
            for (part, configuration), counts in sorted(self.counts.items())
        ]
        return {"figures": figures, "bad": [outcome.to_json() for outcome in self.bad]}


def _share(places: Collection[tuple[int, int]]) -> str:
    """How many points of a plan were tried: ``261 of 261``."""
    return f"{len({number for number, _ in places})} of {max(count for _, count in places)}" if places else ""


def _line(part: str, configuration: str, counts: Counter[str], places: Collection[tuple[int, int]], verdicts: Iterable[str]) -> list[str]:
    return [part, configuration, f"{counts.total():,}", _share(places), *(f"{counts[verdict]:,}" for verdict in verdicts)]


def as_text(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(_cell(at, cell, width) for at, (cell, width) in enumerate(zip(row, widths, strict=True))) for row in rows)


def _cell(at: int, cell: str, width: int) -> str:
    return cell.ljust(width) if at < 2 else cell.rjust(width)


def as_markdown(rows: list[list[str]]) -> str:
    head, *lines = rows
    rule = ["---", "---", *["---:"] * (len(head) - 2)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines))
