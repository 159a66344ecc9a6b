"""Options of stores that a client gave for the session that this process works for, beside those of its own environment.

Who runs the process knows where such options lie, and says so by ``found_by``; nobody does in a process that works for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from manifest.storage.schemes import ObjectPlace
    from manifest.storage.storage_options import StorageOptions

OptionsSource: TypeAlias = Callable[[], Sequence[tuple[str, "StorageOptions"]]]
"""The options of the session in the order in which they were given, each with the URI that it is for; an empty one is all."""

_sources: list[OptionsSource] = []


def found_by(source: OptionsSource) -> None:
    """From now on ``source`` is asked by this process, whenever it opens a store without options."""
    _sources[:] = [source]


def session_options(place: ObjectPlace) -> StorageOptions | None:
    """What the session has for a place, which may be a table's branch: of the longest URI that it lies below, the newest, if any."""
    from manifest.io.paths import split_branch  # noqa: PLC0415  # every process of a server imports this module

    best: tuple[int, StorageOptions | None] = (-1, None)
    wanted, _ = split_branch(place.uri)
    for source in _sources:
        for uri, options in source():
            if len(uri) >= best[0] and (not uri or wanted == uri or wanted.startswith(uri + "/")):
                best = (len(uri), options)
    return best[1]


__all__ = ["OptionsSource", "found_by", "session_options"]
