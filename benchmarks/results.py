"""Measurements in a file of JSON lines, one written as soon as it is made, so that a stopped run goes on where it was."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_QUIET = 0.3
"""Cores that others may use while a measurement counts as quiet."""


@dataclass(frozen=True)
class Record:
    """One measurement; ``failed`` tells why there is none. ``memory`` is growth and peak in bytes; ``queries`` are seconds by name, ``first`` those of the
    first time, and ``processors`` seconds of the processors.

    ``commit`` is the repository's, ``code`` stands for the product's sources and is empty for the peers.
    """

    contender: str
    workload: str
    round: int
    seconds: float = 0.0
    cpu: float = 0.0
    memory: tuple[int, int] = (0, 0)
    foreign: float = 0.0
    queries: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, list[float]] = field(default_factory=dict)
    processors: dict[str, list[float]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    at: str = ""
    commit: str = ""
    code: str = ""
    failed: str | None = None


@dataclass(frozen=True)
class Summary:
    """Of the repeats of one thing: seconds, and bytes of growth. ``first``: seconds of the first time, None where there is none."""

    median: float
    least: float
    most: float
    count: int
    growth: int = 0
    peak: int = 0
    cpu: float = 0.0
    busy: bool = False
    first: float | None = None

    @property
    def spread(self) -> str:
        """The range, where there is one."""
        return f"{short(self.least)}-{short(self.most)} x{self.count}" if self.count > 1 else "x1"


def short(seconds: float) -> str:
    """Seconds with as many digits as they deserve; milliseconds below a tenth."""
    if seconds < 0.1:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.01 else f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"


class Results:
    """What is in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: list[Record] = []
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                form = json.loads(line)
                self.records.append(Record(**{**form, "memory": tuple(form["memory"])}))

    def add(self, record: Record) -> None:
        """Keep one."""
        self.records.append(record)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")

    def drop(self, unwanted: Iterable[str] = (), *, failures: bool = False) -> None:
        """Forget a contender's measurements, or all that failed."""
        names = set(unwanted)
        self.records = [one for one in self.records if one.contender not in names and not (failures and one.failed)]
        if self.path.exists():
            self.path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in self.records), encoding="utf-8")

    def of(self, contender: str, workload: str) -> Iterator[Record]:
        """That worked."""
        return (one for one in self.records if (one.contender, one.workload) == (contender, workload) and not one.failed)

    def has(self, contender: str, workload: str, at: int) -> bool:
        """Whether a round's measurement was made, or failed."""
        return any((one.contender, one.workload, one.round) == (contender, workload, at) for one in self.records)

    def failure(self, contender: str, workload: str) -> str | None:
        """The last reason."""
        found = [one.failed for one in self.records if (one.contender, one.workload) == (contender, workload) and one.failed]
        return found[-1] if found else None

    def summary(self, contender: str, workload: str, query: str | None = None) -> Summary | None:
        """Of the quiet measurements, if there are any: else of all."""
        records = list(self.of(contender, workload))
        quiet = [one for one in records if one.foreign <= _QUIET]
        records, busy = (quiet, False) if quiet else (records, True)
        if query is not None:
            records = [one for one in records if query in one.queries]
        if not records:
            return None
        seconds = [statistics.median(one.queries[query]) if query is not None else one.seconds for one in records]
        return Summary(
            statistics.median(seconds),
            min(seconds),
            max(seconds),
            len(seconds),
            int(statistics.median(one.memory[0] for one in records)),
            int(statistics.median(one.memory[1] for one in records)),
            statistics.median(statistics.median(one.processors[query]) if query in one.processors else one.cpu for one in records),
            busy,
            statistics.median(firsts)
            if (firsts := [statistics.median(one.first[query]) for one in records if query in one.first])
            else None,
        )

    def versions(self) -> dict[str, dict[str, str]]:
        """By contender."""
        found: dict[str, dict[str, Any]] = {}
        for one in self.records:
            if one.versions:
                found.setdefault(one.contender, {}).update(one.versions)
        return found


__all__ = ["Record", "Results", "Summary", "short"]
