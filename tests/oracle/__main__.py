"""Tries many seeds: ``python -m tests.oracle --seeds 1000-2000``. Prints a script for the first wrong answer of each seed."""

from __future__ import annotations

import argparse
import sys
import time

from tests.oracle.cases import run, shrink


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-100", help="first and last seed, as 1000-2000")
    first, _, last = parser.parse_args().seeds.partition("-")
    start, cases, wrong = time.monotonic(), 0, 0
    for seed in range(int(first), int(last or first) + 1):
        outcome = run(seed)
        cases += outcome.cases
        if outcome.wrong is not None:
            wrong += 1
            case, text = shrink(outcome.wrong)
            sys.stdout.write(f"seed {seed}: {text}\n{case.script()}\n\n")
    sys.stdout.write(f"{cases} answers, {wrong} seeds with a wrong one, {cases / (time.monotonic() - start) * 60:.0f} answers a minute\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
