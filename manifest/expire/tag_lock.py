"""Lock of the tags of a branch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from manifest.io.errors import HistoryBusy
from manifest.store import FileStore


@contextmanager
def lock_tags(store: FileStore, action: str) -> Iterator[None]:
    """Lock the tags of the store's branch against replacement.

    Raises ``HistoryBusy``.
    """
    # On local files a tag is replaced by a comparison and a rename, which would undo a deletion between them.
    with store.file_io.lock(store.paths.tags) as alone:
        if not alone and store.file_io.is_directory(store.paths.tags):
            raise HistoryBusy(f"{store.root}: {action} did nothing, because another process replaces or deletes a tag; try again")
        yield
