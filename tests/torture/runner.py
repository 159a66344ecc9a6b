"""Runs the parts, two processes at a time, and gathers what they say."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.torture.report import Outcome, Tally, as_markdown, replay_command

ROOT = Path(__file__).parent.parent.parent
GRACE_SECONDS = 300.0
SHARES = {"kills": 8, "faults": 7, "races": 1, "corruption": 4, "interleavings": 8, "model": 8, "scale": 8}
"""Of the time, by what a try costs and how many are wanted: 2,000 kills, every operation of six scripts, 50 races, 3,000 damages, 3,000 interleavings, 500 tables of the model, 200 of scale an hour."""
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"


@dataclass(frozen=True)
class Job:
    """A process that tortures for so many seconds."""

    part: str
    seed: int
    seconds: float
    tries: int | None


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def run(parts: Sequence[str], seed: int, folder: Path, minutes: float, tries: int | None = None) -> Tally:
    """Torture for ``minutes``: each of two lanes runs every part, one forwards, one backwards, with seeds of its own."""
    share = minutes * 60 / sum(SHARES[part] for part in parts)
    lanes = [
        [Job(part, 2 * seed + lane, share * SHARES[part], tries) for part in ordered] for lane, ordered in enumerate((parts, parts[::-1]))
    ]
    tally = Tally()
    with selectors.DefaultSelector() as selector:
        try:
            for lane in lanes:
                _next(selector, lane, folder)
            while selector.get_map():
                for key, _ in selector.select(5.0):
                    _heard(selector, key.data, tally, folder)
                for key in list(selector.get_map().values()):
                    key.data.ended_in_time(tally)
        except KeyboardInterrupt:  # what was found until then is shown
            for key in list(selector.get_map().values()):
                key.data.stop()
    say("\n")
    return tally


class Worker:
    """A process at work, the lines it says, and the jobs that its lane has left."""

    def __init__(self, job: Job, lane: list[Job], folder: Path) -> None:
        self.job = job
        self.lane = lane
        command = [sys.executable, "-m", "tests.torture", "--worker", job.part, "--seed", str(job.seed), "--folder", str(folder)]
        command += ["--minutes", str(job.seconds / 60), *([] if job.tries is None else ["--tries", str(job.tries)])]
        self._errors = (folder / f"{job.part}-{job.seed}.log").open("w")
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True
        )
        self._deadline = time.monotonic() + job.seconds + GRACE_SECONDS
        self._rest = b""

    def lines(self) -> list[bytes] | None:
        """What it said meanwhile; None once it has ended."""
        assert self.process.stdout is not None
        content = os.read(self.process.stdout.fileno(), 1 << 16)
        if not content:
            return None
        *whole, self._rest = (self._rest + content).split(b"\n")
        return whole

    def ended_in_time(self, tally: Tally) -> None:
        if time.monotonic() > self._deadline:
            self._deadline = float("inf")
            tally.add(Outcome(self.job.part, "the process", self.job.seed, "the whole part", "hang"))
            self.stop()

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> int:
        code = self.process.wait()
        self._errors.close()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def _next(selector: selectors.BaseSelector, lane: list[Job], folder: Path) -> None:
    if lane:
        worker = Worker(lane[0], lane[1:], folder)
        assert worker.process.stdout is not None
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)


def _heard(selector: selectors.BaseSelector, worker: Worker, tally: Tally, folder: Path) -> None:
    lines = worker.lines()
    if lines is None:
        assert worker.process.stdout is not None
        selector.unregister(worker.process.stdout)
        code = worker.close()
        if code not in {0, -signal.SIGKILL}:
            log = (folder / f"{worker.job.part}-{worker.job.seed}.log").read_text()
            tally.add(
                Outcome(worker.job.part, "the process", worker.job.seed, "the whole part", "abort", f"ended with {code}: {log[-2000:]}")
            )
            say(f"\n{worker.job.part} ended with {code}:\n{log[-2000:]}\n")
        _next(selector, worker.lane, folder)
        return
    for line in lines:
        outcome = Outcome.from_json(json.loads(line))
        tally.add(outcome)
        if not outcome.good:
            again = "" if outcome.files is None else f"\n  {replay_command(outcome.files)}"
            say(f"\n{outcome.part}, {outcome.configuration}: {outcome.what}: {outcome.verdict}: {outcome.detail[-1000:]}{again}\n")
    say(f"\r{tally.total().total():,} tried, {len(tally.bad):,} wrong; at work: {worker.job.part}      ")


def refresh(file: Path, rows: list[list[str]], seed: int, minutes: float) -> None:
    """Put the figures between the marks of a Markdown file."""
    head, _, rest = file.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    figures = f"`python -m tests.torture --minutes {minutes:.0f} --seed {seed}`:\n\n{as_markdown(rows)}"
    file.write_text(f"{head}{BEGIN}\n{figures}\n{END}{tail}")
