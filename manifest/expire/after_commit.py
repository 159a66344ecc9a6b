"""What follows a commit: tags that are due, then snapshots that are too many. A failure is logged; the commit stands."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from fileindex.base.errors import PaimonError
from fileindex.base.lazy import LazyModule
from fileindex.base.log import logger_of
from manifest.options.tag_periods import TAG_MODE
from manifest.store import FileStore

if TYPE_CHECKING:
    from manifest.expire import automatic_tags, snapshots
else:
    automatic_tags = LazyModule("manifest.expire.automatic_tags")
    snapshots = LazyModule("manifest.expire.snapshots")

_LOG = logger_of(__name__)


def after_commit(store: FileStore, newest: int | None, look: snapshots.FirstLook | None) -> None:
    """Make tags and expire snapshots as the table's options say, ``newest`` being the commit's; tags first, for they spare files."""
    steps: list[tuple[str, Callable[[], object]]] = []
    if TAG_MODE in store.options.raw:
        steps.append(("its tags could not be made", lambda: automatic_tags.make_tags(store, newest)))
    if not _are_few(store, newest):
        steps.append(("old snapshots could not be expired", lambda: snapshots.expire_after_commit(store, newest, look)))
    for failure, step in steps:
        with suppress(OSError):
            try:
                step()
            except PaimonError:
                _LOG.warning("%s: the commit stands, but %s", store.root, failure, exc_info=True)


def _are_few(store: FileStore, newest: int | None) -> bool:
    """Whether there are no more snapshots than are kept in any case, so that nothing that expires them need be loaded."""
    options = store.options
    return newest is not None and newest <= max(options.snapshot_num_retained_min, 1) and not options.changelogs_outlive_snapshots


__all__ = ["after_commit"]
