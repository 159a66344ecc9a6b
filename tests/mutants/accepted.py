"""Mutants that need no test, with the reason: they change nothing, or only speed or texts for people."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.operators import Mutation

PATH = Path(__file__).with_name("accepted.toml")
KINDS = ("equivalent", "speed", "text")


@dataclass(frozen=True)
class Accepted:
    """The kind and the reason of each accepted mutant, by key."""

    kinds: Mapping[str, str]
    reasons: Mapping[str, str]

    @classmethod
    def read(cls, path: Path = PATH) -> Accepted:
        """Read the checked-in file. Raise ``ValueError`` for an entry without a kind or a reason, or given twice."""
        entries = tomllib.loads(path.read_text()).get("mutant", [])
        for entry in entries:
            if entry.get("kind") not in KINDS or not entry.get("reason"):
                raise ValueError(f"{path}: mutant {entry.get('key')!r} needs a kind ({', '.join(KINDS)}) and a reason")
        keys = [entry["key"] for entry in entries]
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise ValueError(f"{path}: given twice: {', '.join(sorted(twice))}")
        return cls({entry["key"]: entry["kind"] for entry in entries}, {entry["key"]: entry["reason"] for entry in entries})

    def kind(self, key: str) -> str | None:
        """Return the kind of an accepted mutant, None for any other."""
        return self.kinds.get(key)


def entry_of(mutation: Mutation) -> str:
    """Return the text of an entry to complete."""
    change = json.dumps(f"{mutation.operator}: {mutation.before} -> {mutation.after}", ensure_ascii=False)
    where = json.dumps(f"{mutation.module} {mutation.function}".strip())
    return f'[[mutant]]\nkey = "{mutation.key}"\nwhere = {where}\nchange = {change}\nkind = ""\nreason = ""\n'
