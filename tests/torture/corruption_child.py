"""A process with everything imported that forks for each question, so that a try costs no start: run as one of its own.

A line of JSON comes in, ``{"do": "truth" | "try", ...}``, and one goes out. What the fork does under its limits of memory and time, the
other process sees: an abort as a signal, a hang as a fork that had to be killed.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import random
import resource
import select
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import lsm.read.split  # noqa: F401 -- imported before the fork, as what follows
import pyspark_paimon.stream.follow  # noqa: F401
from manifest.io.file_cache import SHARED
from paimon_base.errors import PaimonError
from pyspark_paimon import Table
from pyspark_paimon.plugins.fsck import jobs as fsck
from tests.torture.check import SETTLING
from tests.torture.questions import Answer, truth

MEMORY = 4 << 30
SECONDS = 60
_ALWAYS = frozenset({"scan", "count", "compact", "write", "lookup", "tag", "branch", "changes", "follow", "repeat", "batch", "statistics"})
_ASKED = 8
"""Questions of a try, besides those that are always asked."""
_ONE_IN = 8
"""Of the questions after an error, for most say the same again; and of the checks where nothing was seen."""


def tried(path: Path, answers: list[Answer], file: str, seed: int) -> tuple[str, str]:
    """Verdict and details for a table whose ``file`` is damaged."""
    rng = random.Random(seed)
    concerned = [answer for answer in answers if file in answer.files]
    always = [answer for answer in concerned if answer.question.call in _ALWAYS and not answer.question.column]
    others = [answer for answer in concerned if answer not in always]
    verdict = "right"
    said = ""
    for answer in [*always, *rng.sample(others, min(_ASKED, len(others)))]:
        if verdict == "typed error" and rng.randrange(_ONE_IN):
            continue
        try:
            if answer.question.ask(path) != answer.answer:
                return "wrong rows", str(answer.question)
        except PaimonError as error:
            if not _names(str(error), file):
                return "untyped error", f"{answer.question}: names no file: {type(error).__name__}: {error}"
            verdict, said = "typed error", f"{answer.question}: {error}"
        except Exception as error:  # noqa: BLE001 -- what must not be
            return "untyped error", f"{answer.question}: {type(error).__name__}: {error}: {_where(error)}"
    if verdict == "typed error" or not rng.randrange(_ONE_IN):
        return _checked(path, file, verdict, said)
    return verdict, said


def _checked(path: Path, file: str, verdict: str, said: str) -> tuple[str, str]:
    """What ``fsck`` says: where reading fails it names the file."""
    SHARED.clear()
    try:
        found = Table.open(path).fsck("deep")
    except PaimonError as error:
        return (verdict, said) if _names(str(error), file) else ("untyped error", f"fsck: {type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 -- what must not be
        return "untyped error", f"fsck: {type(error).__name__}: {error}: {_where(error)}"
    if verdict == "typed error" and not any(_names(str(problem), file) for problem in found.problems):
        return "broken table", f"fsck says {[str(one)[:200] for one in found.problems][:2]} of what is an error of {said}"
    return verdict, said


def _names(text: str, file: str) -> bool:
    return Path(file).name in text


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))


def carry_out(order: dict[str, Any]) -> tuple[str, str]:
    """What an order asks for, in a fork."""
    path, known = Path(order["table"]), Path(order["truth"])
    if order["do"] == "truth":
        answers = truth(path)
        known.write_bytes(pickle.dumps(answers))
        return "right", json.dumps(sorted({file for answer in answers for file in answer.files}))
    return tried(path, pickle.loads(known.read_bytes()), order["file"], order["seed"])


def fork(order: dict[str, Any]) -> tuple[str, str]:
    """``carry_out`` in a fork with limits."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            if order["do"] == "try":
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with os.fdopen(writing, "w") as answer:
                json.dump(carry_out(order), answer)
            status = 0
        except BaseException:  # noqa: BLE001 -- shown by whoever waits
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    said = _all_of(reading, SECONDS if order["do"] == "try" else 10 * SECONDS)
    os.close(reading)
    if said is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if said is None:
        return "hang", f"more than {SECONDS} s"
    if os.WIFSIGNALED(status):
        return "abort", signal.Signals(os.WTERMSIG(status)).name
    if not said:
        return "abort", f"ended with {os.waitstatus_to_exitcode(status)}"
    verdict, detail = json.loads(said)
    return verdict, detail


def _all_of(pipe: int, seconds: float) -> bytes | None:
    said = b""
    while select.select([pipe], [], [], seconds)[0]:
        piece = os.read(pipe, 1 << 16)
        if not piece:
            return said
        said += piece
    return None


def main() -> None:
    warnings.simplefilter("ignore")
    setattr(fsck, SETTLING, 0.0)  # nobody expires anything beside: problems are not waited for
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(fork(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
