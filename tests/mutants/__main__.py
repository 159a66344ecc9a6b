"""``python -m tests.mutants``: see the package."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from tests.mutants import coverage_map
from tests.mutants.accepted import Accepted, entry_of
from tests.mutants.child import preload
from tests.mutants.operators import Mutation, mutations
from tests.mutants.recorder import PACKAGES, ROOT
from tests.mutants.runner import BROKEN, KILLED, SURVIVED, TIMEOUT, UNCOVERED, Result, Runner

FOLDER = ROOT / "artifacts/mutants"
SPARK = ("pyspark_paimon/spark/", "pyspark_paimon/demo.py", "pyspark_paimon/example")
"""Left alone: tests over Spark take minutes for each."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Change the core at random places; tests should notice.")
    parser.add_argument("--seed", type=int, default=1, help="the mutants are drawn from it (default: 1)")
    parser.add_argument("--number", type=int, default=500, help="number of mutants (default: 500)")
    parser.add_argument("--module", default="*", help="glob of the files to change, such as 'lsm/merge/*'")
    parser.add_argument("--key", action="append", default=[], help="this mutant only; may be given again")
    parser.add_argument("--again", type=Path, metavar="FILE", help="the mutants of an earlier report that no test noticed")
    parser.add_argument("--budget", type=float, default=40, help="most seconds of tests for a mutant, as recorded (default: 40)")
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time (default: 2)")
    parser.add_argument("--keep-map", action="store_true", help="use the recorded lines as they are; changed modules get too few tests")
    return parser.parse_args()


def draw(number: int, seed: int, pattern: str) -> list[Mutation]:
    """Draw mutants: each line of the core that can be changed is equally likely, whatever the number of its changes."""
    lines: defaultdict[tuple[str, int], list[Mutation]] = defaultdict(list)
    for mutation in all_mutations(pattern):
        lines[mutation.module, mutation.first].append(mutation)
    chance = random.Random(seed)
    places = sorted(lines)
    chance.shuffle(places)
    drawn: list[Mutation] = []
    for place in places:
        mutation = chance.choice(lines[place])
        if len(drawn) < number and mutation.is_valid((ROOT / mutation.module).read_text()):
            drawn.append(mutation)
    return drawn


def all_mutations(pattern: str) -> Iterable[Mutation]:
    """Yield all mutations of the core's modules whose path matches."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        module = path.relative_to(ROOT).as_posix()
        if fnmatch(module, pattern) and not module.startswith(SPARK):
            yield from mutations(module, path.read_text())


def chosen(given: argparse.Namespace) -> list[Mutation]:
    """Return the mutants that the arguments ask for."""
    keys = set(given.key)
    if given.again is not None:
        results = [json.loads(line) for line in given.again.read_text().splitlines()]
        keys |= {result["mutation"]["key"] for result in results if result["status"] in {SURVIVED, UNCOVERED}}
    if keys:
        return [mutation for mutation in all_mutations(given.module) if mutation.key in keys]
    return draw(given.number, given.seed, given.module)


def main() -> int:
    """Run mutants and report; return 1 if one survives that is not accepted."""
    given = arguments()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not given.keep_map:
        digests = coverage_map.file_digests()
        modules = coverage_map.CoverageMap.load(FOLDER).outdated(coverage_map.recordable(digests), digests)
        if modules:
            say(f"recording which lines the tests of {len(modules)} modules run")
            coverage_map.record(FOLDER, modules, digests)
    tests = coverage_map.CoverageMap.load(FOLDER)
    accepted = Accepted.read()
    preload()
    if threading.active_count() > 1:
        raise RuntimeError(f"a fork would copy {threading.active_count()} threads: remove what starts them from preload()")
    mutants = chosen(given)
    say(f"{len(mutants)} mutants, seed {given.seed}")
    report = FOLDER / (f"again-{given.again.stem}.jsonl" if given.again else f"seed-{given.seed}.jsonl")
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, report.open("w") as lines:
        for result in Runner(tests, Path(folder), workers=given.workers, budget=given.budget).run(mutants):
            results.append(result)
            print(json.dumps(result.to_json()), file=lines, flush=True)
            if result.status in {SURVIVED, UNCOVERED, BROKEN} and result.mutation.key not in accepted.reasons:
                show(result, len(results))
    return summarize(results, accepted, report)


def show(result: Result, number: int) -> None:
    """Print a mutant that no test noticed."""
    mutation = result.mutation
    left = f", {result.left_out} more left out" if result.left_out else ""
    say(f"\n{number}. {result.status}: {mutation.module}:{mutation.first} in {mutation.function or 'the module'}, {mutation.operator}")
    if result.status == BROKEN:
        say(result.reason)
    say(f"{mutation.diff((ROOT / mutation.module).read_text())}\n{result.tests} tests run it{left}; key {mutation.key}")


def summarize(results: Sequence[Result], accepted: Accepted, report: Path) -> int:
    """Print the figures of a run; return 1 if a mutant survives that is not accepted."""
    counts = Counter(
        accepted.kind(result.mutation.key) or result.status if result.status in {SURVIVED, UNCOVERED} else result.status
        for result in results
    )
    noticed = counts[KILLED] + counts[TIMEOUT]
    missed = counts[SURVIVED] + counts[UNCOVERED]
    say("\n" + ", ".join(f"{status}: {count}" for status, count in sorted(counts.items())))
    say(f"noticed of those that change behaviour: {noticed} of {noticed + missed} ({100 * noticed / max(1, noticed + missed):.1f} %)")
    say(f"all results: {report}")
    left = [result for result in results if result.status == SURVIVED and not accepted.kind(result.mutation.key)]
    if left:
        say("Write a test for each that is a hole. For one that changes nothing that counts, add to tests/mutants/accepted.toml:\n")
        say("\n".join(entry_of(result.mutation) for result in left))
    return 1 if missed else 0


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
