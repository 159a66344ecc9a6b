"""Benchmarks beside the peers.

    python -m benchmarks run --profile quick           # minutes: a tenth of the rows, one round
    python -m benchmarks run --profile full            # an hour: 6,001,215 rows; what is done stays done, the same command goes on
    python -m benchmarks run --profile full --contenders floor,ours --only write,compact --minutes 5
    python -m benchmarks run --profile full --again ours,floor    # forget these contenders' figures and tables first
    python -m benchmarks report --profile full         # the report of what is there
    python -m benchmarks docs --profile full           # and into docs/performance.md, with the picture

Inputs, tables and measurements lie in ``--work`` (``bench-work``, some 20 GB for all contenders at full size); ``clean`` removes the tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks import singles
from benchmarks.docs_page import publish
from benchmarks.environments import ROOT
from benchmarks.harness import PROFILES, Bench, contender, known
from benchmarks.report import Report
from benchmarks.workloads import BY_NAME


def names(text: str | None, allowed: list[str]) -> list[str]:
    """A list with commas; everything if there is none."""
    chosen = text.split(",") if text else allowed
    if unknown := [name for name in chosen if name not in allowed]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(allowed)}")
    return chosen


def say(text: str) -> None:
    """A line of progress, at once."""
    print(text, flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("run", "report", "docs", "clean"))
    parser.add_argument("--profile", choices=tuple(PROFILES), default="quick")
    parser.add_argument("--contenders", help="names with commas; ours and floor are always among them")
    parser.add_argument("--only", help="workloads with commas; no benchmarks of one file then")
    parser.add_argument("--again", help="contenders whose figures and tables are forgotten first")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing after so many")
    parser.add_argument("--rounds", type=int, help="other than the profile's")
    parser.add_argument("--work", type=Path, default=ROOT / "bench-work")
    return parser.parse_args()


def report_of(bench: Bench) -> Report:
    """Of what was measured so far; writes its files."""
    data = bench.inputs_of("ours", BY_NAME["write"])
    numbers = {"rows": data.rows, "sixth": data.rows // 6, "small": data.rows // 120}
    everyone = {name: contender(name) for name in known()}
    found = Report(bench.profile.name, bench.results, everyone, bench.excluded_files, numbers, bench.commit)
    found.figures = singles.figures(bench.profile.name, bench.folder / "singles")
    bench.folder.mkdir(parents=True, exist_ok=True)
    (bench.folder / "ratios.svg").write_text(found.picture(), encoding="utf-8")
    (bench.folder / "report.md").write_text(found.markdown("ratios.svg"), encoding="utf-8")
    form = {
        "about": found.about(),
        "measurements": [asdict(one) for one in bench.results.records],
        "figures": [asdict(each) for each in found.figures],
    }
    (bench.folder / "results.json").write_text(json.dumps(form, indent=1), encoding="utf-8")
    return found


def main() -> None:
    given = parsed()
    profile = PROFILES[given.profile]
    work: Path = given.work.resolve()
    if given.verb == "clean":
        shutil.rmtree(work / profile.name / "tables", ignore_errors=True)
        return
    chosen = names(given.contenders, known())
    chosen = [name for name in known() if name in {*chosen, "floor", "ours"}]
    only = names(given.only, list(BY_NAME)) if given.only else []
    if given.rounds:
        profile = type(profile)(**{**asdict(profile), "rounds": given.rounds})
    started = time.monotonic()
    bench = Bench(work, profile, chosen if given.verb == "run" else known(), only, say, deadline=started + 60 * given.minutes)
    if given.verb == "run":
        for name in names(given.again, known()) if given.again else []:
            bench.results.drop([name])
            bench.tables.drop(name)
        bench.start()
        bench.measure_rounds(0, 1)
        if not only:
            singles.run_singles(profile.name, bench.folder / "singles", say, deadline=bench.deadline)
        bench.measure_rounds(1, profile.rounds)
    report = report_of(bench)
    if given.verb == "docs":
        publish(report, bench.folder)
    print("\n" + report.markdown().split("**All measurements**")[0])
    print(f"{(time.monotonic() - started) / 60:.1f} minutes; report, picture and figures: {bench.folder}")


if __name__ == "__main__":
    main()
