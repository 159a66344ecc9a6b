"""Store options that a client gave for its session.

They complement the environment of the process that works for the session. The code that runs the process registers a source with
``set_options_source``. Other processes have no source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from manifest.storage.schemes import ObjectPlace
    from manifest.storage.storage_options import StorageOptions

OptionsSource: TypeAlias = Callable[[], Sequence[tuple[str, "StorageOptions"]]]
"""Returns (URI, options) in the order they were given. An empty URI applies to all paths."""

_sources: list[OptionsSource] = []


def set_options_source(source: OptionsSource) -> None:
    """Set the source of session options for this process.

    It is used whenever a store is opened without options.
    """
    _sources[:] = [source]


def session_options(place: ObjectPlace) -> StorageOptions | None:
    """Return the session's options for a place, or None.

    The longest URI above the place wins, then the newest options. The place may be a table's branch.
    """
    from manifest.io.paths import split_branch  # noqa: PLC0415  # every process of a server imports this module

    best: tuple[int, StorageOptions | None] = (-1, None)
    wanted, _ = split_branch(place.uri)
    for source in _sources:
        for uri, options in source():
            if len(uri) >= best[0] and (not uri or wanted == uri or wanted.startswith(uri + "/")):
                best = (len(uri), options)
    return best[1]


__all__ = ["OptionsSource", "session_options", "set_options_source"]
