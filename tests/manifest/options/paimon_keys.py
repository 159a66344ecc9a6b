"""The option keys of Paimon, each with its former ones, and a value of each that is refused here."""

from __future__ import annotations

from pathlib import Path

from manifest.options.known_keys import REFUSED, Refusal
from manifest.options.secondary_indexes import REFUSED_PREFIXES

_LINES = (Path(__file__).with_name("paimon_keys.txt")).read_text().splitlines()[1:]
PAIMON_KEYS: dict[str, tuple[str, ...]] = {key: tuple(formers) for key, *formers in map(str.split, _LINES)}
FORMER_PAIRS = [(present, former) for present, formers in PAIMON_KEYS.items() for former in formers]
REFUSED_KEYS = sorted({*REFUSED, *(key for key in PAIMON_KEYS if key.startswith(REFUSED_PREFIXES))})


def refused_value(refusal: Refusal) -> str:
    """Return a value that the refusal does not let pass."""
    return next(value for value in ("true", "someone", "../outside") if refusal(value) is not None)
