"""A case is a table, a condition and a question. A seed draws many; a wrong one shrinks and prints a script."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from paimon_base.errors import PaimonError
from paimon_base.thresholds import Thresholds, use_thresholds
from tests.model.machine import FAST
from tests.oracle.conditions import Condition, Params, Term
from tests.oracle.drawing import Drawing
from tests.oracle.layouts import draw_spec
from tests.oracle.questions import CHEAP, DEAR, QUESTIONS
from tests.oracle.tables import Built, Spec


@dataclass(frozen=True)
class Case:
    """One table, one condition, one question, whose own choices come from ``seed``."""

    spec: Spec
    condition: Condition
    question: str
    seed: int

    def failure(self) -> str | None:
        """What is wrong. None: the answer is right."""
        home = tempfile.mkdtemp(prefix="paimon-oracle-", dir=FAST)
        try:
            with _limits(self.spec):
                built = build(self.spec, f"{home}/t")
                return built if isinstance(built, str) else ask(built, self.condition, self.question, self.seed)
        finally:
            shutil.rmtree(home)

    def shrunk(self) -> Iterator[Case]:
        yield from (replace(self, condition=less) for less in self.condition.shrunk())
        yield from (replace(self, spec=less) for less in self.spec.shrunk())

    def script(self) -> str:
        """Python text that repeats the failure by itself."""
        return "\n".join(
            [
                "import datetime",
                "from decimal import Decimal",
                "from tests.oracle.cases import Case",
                "from tests.oracle.conditions import Condition, Term",
                "from tests.oracle.tables import Spec, Step",
                "nan, inf = float('nan'), float('inf')",
                f"case = {self!r}",
                "print(case.failure())",
            ]
        )


def _limits(spec: Spec) -> AbstractContextManager[object]:
    return use_thresholds(Thresholds.tiny()) if spec.tiny else nullcontext()


def build(spec: Spec, path: str) -> Built | str:
    """The table, or how it failed."""
    try:
        return Built(spec, path)
    except Exception as error:  # noqa: BLE001  # any error is a failure: the steps are allowed ones
        return f"{_NOT_BUILT} {type(error).__name__}: {error}"


_NOT_BUILT = "not built:"


def ask(built: Built, condition: Condition, question: str, seed: int) -> str | None:
    try:
        return QUESTIONS[question](built, condition, random.Random(seed))
    except PaimonError as error:
        return f"{question}: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001  # an untyped error is a failure, too
        return f"{question}: untyped {type(error).__name__}: {error}"


def shrink(case: Case, most: int = 300) -> tuple[Case, str]:
    """The simplest case on the way that is still wrong, and what is wrong with it."""
    text = case.failure() or "right when it is asked alone"
    tried = 0
    improved = True
    while improved and tried < most:
        improved = False
        for less in case.shrunk():
            tried += 1
            found = less.failure()
            if found is not None and _alike(found, text):
                case, text, improved = less, found, True
                break
            if tried >= most:
                break
    return case, text


def _alike(text: str, other: str) -> bool:
    """Whether both are wrong answers, or both the same error of a table that is not built: simpler tables may be refused."""
    words = [each.split(" ")[2] if each.startswith(_NOT_BUILT) else "" for each in (text, other)]
    return words[0] == words[1]


@dataclass
class Outcome:
    """Number of cases of a run, and the first wrong one with its text."""

    cases: int = 0
    wrong: Case | None = None
    text: str = ""


def run(seed: int, *, conditions: int = 24, changes: int = 2) -> Outcome:
    """Ask about one random table: some conditions, a few questions with each, and some that change it."""
    draw = random.Random(seed)
    spec = draw_spec(draw)
    outcome = Outcome()
    home = tempfile.mkdtemp(prefix="paimon-oracle-", dir=FAST)
    try:
        with _limits(spec):
            built = build(spec, f"{home}/t")
            if isinstance(built, str):
                everything = Condition("flag", (), (Term("bo", "literal", (), True),))
                outcome.wrong, outcome.text = Case(spec, everything, "rows", 0), built
                return outcome
            drawing = Drawing(draw, built.columns, spec.indexed)
            for number in range(conditions):
                condition = drawing.condition(draw.choice([0, 1, 1, 2, 2]))
                dear = draw.sample(DEAR, 1) if number < changes else []
                for question in ["rows", *draw.sample(CHEAP, 3), *dear]:
                    chosen = draw.randrange(2**31)
                    outcome.cases += 1
                    text = ask(built, condition, question, chosen)
                    if text is not None:
                        outcome.wrong, outcome.text = Case(spec, condition, question, chosen), text
                        return outcome
    finally:
        shutil.rmtree(home)
    return outcome


def text_of(case: Case) -> str:
    """The filter of a case, for messages."""
    return case.condition.sql(_Unchanged(), Params())  # type: ignore[arg-type]


class _Unchanged:
    """Names before any change of the schema."""

    def text(self, ident: str) -> str:
        return ident
