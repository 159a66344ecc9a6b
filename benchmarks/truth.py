"""The right answers, computed once by pyarrow from the inputs: rows and hashes of every state, and of every query."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import queries
from benchmarks.answers import answer_of
from benchmarks.contenders.worker import Query
from benchmarks.inputs import Inputs

Answer = dict[str, int]


class WrongAnswer(Exception):
    """A contender's answer is not the truth; its time does not count."""


@dataclass(frozen=True)
class Truth:
    """Answers by state, and by the name of a query one for each of its filters."""

    states: dict[str, Answer]
    lookups: list[Query]
    found: dict[str, list[Answer]]

    def check_state(self, state: str, answer: Answer) -> None:
        """Raises ``WrongAnswer``."""
        if answer != self.states[state]:
            raise WrongAnswer(
                f"{answer['rows']:,} rows with hash {answer['hash']}, not {self.states[state]['rows']:,} with {self.states[state]['hash']}"
            )

    def check_queries(self, answers: dict[str, list[Answer]], asked: Sequence[Query]) -> None:
        """Raises ``WrongAnswer``."""
        for query in asked:
            right = self.found.get(query.name) or _plan_answers(query)
            if (said := answers.get(query.name)) != right:
                raise WrongAnswer(f"{query.name}: {said}, not {right}")


def _plan_answers(query: Query) -> list[Answer]:
    name = query.name.split(", ")[1]
    return [{"rows": queries.PLAN_FILTERS[name][1], "hash": 0}] * len(query.filters)


def merged(parts: Sequence[pa.Table], primary_key: Sequence[str]) -> pa.Table:
    """Of each key the last row."""
    rows = pa.concat_tables(parts).combine_chunks()
    keys = [rows[name].to_numpy() for name in reversed(primary_key)]
    order = np.lexsort(keys)
    last = np.ones(len(order), bool)
    last[:-1] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    return rows.take(pa.array(order[last]))


def truth_of(inputs: Inputs, *, lineitem: bool = True) -> Truth:
    """From the inputs' folder, where it is kept once computed."""
    kept = inputs.folder / f"truth-{_version()}.json"
    if not kept.exists():
        kept.write_text(json.dumps(_computed(inputs, lineitem=lineitem)), encoding="utf-8")
    form = json.loads(kept.read_text(encoding="utf-8"))
    return Truth(form["states"], [Query(**query) for query in form["lookups"]], form["found"])


def _version() -> str:
    """Another way of asking or hashing asks for another computation."""
    here = Path(__file__).parent
    return hashlib.sha256(b"".join((here / name).read_bytes() for name in ("queries.py", "answers.py", "inputs.py"))).hexdigest()[:12]


def _computed(inputs: Inputs, *, lineitem: bool) -> dict[str, Any]:
    base = pq.read_table(inputs.base)
    states = {"base": answer_of(base)}
    if inputs.smalls:
        states["runs"] = answer_of(merged([base, *map(pq.read_table, inputs.small)], inputs.primary_key))
    rows = merged([base, pq.read_table(inputs.upsert)], inputs.primary_key)
    del base
    states["upserted"] = answer_of(rows)
    asked = queries.lookups(rows) if lineitem else []
    found: dict[str, list[Answer]] = {}
    for query in asked:
        tables = [queries.matching(rows, query, conditions) for conditions in query.filters]
        found[query.name] = [{"rows": table.num_rows, "hash": 0} if query.count else answer_of(table) for table in tables]
    return {"states": states, "lookups": [asdict(query) for query in asked], "found": found}


__all__ = ["Answer", "Truth", "WrongAnswer", "merged", "truth_of"]
