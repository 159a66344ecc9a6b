"""The docs' table of what works with whom, made from what the tests have proven: ``python -m tests.interop.table`` writes it.

Cells come from ``outcomes.json``, which ``PYSPARK_PAIMON_INTEROP=record pytest tests/interop`` makes.
"""

from __future__ import annotations

from pathlib import Path

from tests.interop.features import FEATURES, OURS_READS, PEERS, READS_OURS, TURNS
from tests.interop.recording import Cell, recorded_cells

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN, END = "<!-- interop:begin -->", "<!-- interop:end -->"
WAYS = {
    (True, True, True): "both ways, in turns",
    (True, True, False): "both ways",
    (True, False, True): "reads ours, in turns",
    (True, False, False): "reads ours",
    (False, True, True): "we read its, in turns",
    (False, True, False): "we read its",
    (False, False, True): "in turns",
    (False, False, False): "",
}
SUBJECTS = {READS_OURS: "ours: ", OURS_READS: "own: ", TURNS: ""}


def rendered(cells: dict[Cell, str]) -> str:
    """The Markdown between the marks."""
    lines = [f"| | {' | '.join(PEERS)} |", "|---" * (len(PEERS) + 1) + "|"]
    lines += [
        f"| {name} | {' | '.join(cell(cells, name, peer) for peer in PEERS)} |" for name in FEATURES if any(key[0] == name for key in cells)
    ]
    return "\n".join(lines)


def cell(cells: dict[Cell, str], name: str, peer: str) -> str:
    """One cell: the ways that work, then what the peer does instead in the others; a dash where nothing was tried."""
    outcomes = {way: cells.get((name, peer, way)) for way in (READS_OURS, OURS_READS, TURNS)}
    said = [WAYS[outcomes[READS_OURS] == "yes", outcomes[OURS_READS] == "yes", outcomes[TURNS] == "yes"]]
    others = {way: outcome for way, outcome in outcomes.items() if outcome not in {None, "yes"}}
    if len(others) == 2 and len(set(others.values())) == 1:
        said += [outcome for outcome in set(others.values()) if outcome is not None]
    else:
        said += [f"{SUBJECTS[way]}{outcome}" for way, outcome in others.items()]
    return "; ".join(part for part in said if part) or "–"


def with_table(page: str, table: str) -> str:
    """The page's text with the table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_table(text, rendered(recorded_cells())), encoding="utf-8")


if __name__ == "__main__":
    main()
