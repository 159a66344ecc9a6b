"""``python -m tests.check``: see the package."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.check.durations import KEY
from tests.check.selection import changed_files, distances_of_tests, select

ROOT = Path(__file__).parents[2]
LINT = (
    ("ruff", "check", "--quiet", "."),
    ("ruff", "format", "--quiet", "--check", "."),
    ("mypy",),
)
WORKERS = 2
SHOWN = 20
QUICK = ("--tier", "fast", "-m", "not spark")


def main() -> int:
    """Run lint, types and tests; return the first exit code that is not 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.check", description="Lint, types and the tests nearest to what changed.")
    parser.add_argument("--base", default="main", help="the branch whose merge base the changes are counted from (default: main)")
    parser.add_argument("--seconds", type=float, default=55, help="wall time for the tests, as estimated (default: 55)")
    parser.add_argument("--list", action="store_true", help="print the chosen test modules and their distance, run nothing")
    given = parser.parse_args()
    started = time.monotonic()
    changed = changed_files(ROOT, given.base)
    distances = distances_of_tests(ROOT, changed)
    selection = select(distances, _known_seconds(), changed, WORKERS * given.seconds)
    if given.list:
        for path in selection.chosen:
            _say(f"{distances[path]:3} {path}")
    else:
        for command in LINT:
            if code := _run(*command):
                return code
        _say(f"lint and types: {time.monotonic() - started:.0f} s")
    _say(f"{len(changed)} changed files reach {len(distances)} test modules; {len(selection.chosen)} are chosen")
    if selection.left_out:
        more = len(selection.left_out) - SHOWN
        _say("left out, `make test` runs them: " + " ".join(selection.left_out[:SHOWN]) + (f" and {more} more" if more > 0 else ""))
    if given.list or not selection.chosen:
        return 0
    workers = ("-n", str(WORKERS), "--dist", "worksteal") if len(selection.chosen) > 1 else ()
    code = _run("pytest", "-q", "-p", "tests.check.durations", *workers, *QUICK, *selection.chosen)
    _say(f"in all: {time.monotonic() - started:.0f} s")
    return 0 if code == 5 else code  # 5: all tests of the chosen modules are for other targets


def _run(module: str, *arguments: str) -> int:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, env={**os.environ, "PATH": path}, check=False).returncode


def _known_seconds() -> dict[str, float]:
    """Return the seconds of each test module that earlier runs measured."""
    remembered = ROOT / ".pytest_cache/v" / KEY
    return dict(json.loads(remembered.read_text())) if remembered.exists() else {}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
