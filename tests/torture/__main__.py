"""``python -m tests.torture``: see the package."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

from tests.torture import runner
from tests.torture.report import Tally, as_text, case_of

PARTS = tuple(runner.SHARES)


def module_of(part: str) -> ModuleType:
    """The module of a part; the model of whole tables has a package of its own."""
    return importlib.import_module("tests.model.torture" if part == "model" else f"tests.torture.{part}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture",
        description="Kills, faults, races, corruption, interleavings and random steps beside a model, and what they found.",
    )
    parser.add_argument("--minutes", type=float, default=30, help="for all parts together, two processes at a time")
    parser.add_argument("--seed", type=int, help="what is drawn at random is drawn from it (default: another one each time)")
    parser.add_argument("--part", choices=PARTS, action="append", help="this part only; may be given again")
    parser.add_argument("--tries", type=int, help="end after so many tries of each process")
    parser.add_argument("--folder", type=Path, help="where failures and figures are left (default: a new temporary folder)")
    parser.add_argument("--replay", type=Path, metavar="FOLDER", help="run the try again that left this folder")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="put the table of figures between the marks of this file")
    parser.add_argument("--worker", choices=PARTS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    given = arguments()
    if given.replay is not None:
        part = module_of(case_of(given.replay)["part"])
        outcome = part.replay(given.replay.resolve())
        runner.say(f"{outcome.part}, {outcome.configuration}: {outcome.what}: {outcome.verdict}\n{outcome.detail}\n")
        return 0 if outcome.good else 1
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    folder = (given.folder or Path(tempfile.mkdtemp(prefix="torture-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if given.worker:
        return _work(given.worker, seed, folder, given.minutes * 60, given.tries)
    runner.say(f"seed {seed}, figures and failures in {folder}\n")
    started = time.time()
    tally = runner.run(given.part or PARTS, seed, folder, given.minutes, given.tries)
    return _told(tally, seed, folder, (time.time() - started) / 60, given.markdown)


def _work(part: str, seed: int, folder: Path, seconds: float, tries: int | None) -> int:
    """Print one outcome per line until the time is over."""
    end = time.monotonic() + seconds
    # Libraries write to file descriptor 1 too. Only outcomes may reach the parent's pipe.
    pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    outcomes = module_of(part).outcomes(seed, folder)
    for number, outcome in enumerate(outcomes, 1):
        pipe.write(json.dumps(outcome.to_json()) + "\n")
        pipe.flush()
        if time.monotonic() >= end or number == tries:
            break
    outcomes.close()  # its temporary folders go
    os._exit(0)  # a part may have processes of its own; they end with their pipes


def _told(tally: Tally, seed: int, folder: Path, minutes: float, markdown: Path | None) -> int:
    rows = tally.rows()
    figures = {"seed": seed, "minutes": round(minutes, 1), **tally.to_json()}
    (folder / "figures.json").write_text(json.dumps(figures, indent=1))
    runner.say(f"\n{as_text(rows)}\n\nseed {seed}, {minutes:.0f} minutes, {len(tally.bad)} wrong; figures in {folder / 'figures.json'}\n")
    if markdown is not None:
        runner.refresh(markdown, rows, seed, minutes)
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
