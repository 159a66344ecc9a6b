"""Maintenance after a commit: create due tags, then expire snapshots.

A failure is logged. The commit stays valid.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from manifest.options.tag_periods import TAG_MODE
from manifest.store import FileStore
from paimon_base.errors import PaimonError
from paimon_base.lazy import LazyModule
from paimon_base.log import logger_of

if TYPE_CHECKING:
    from manifest.expire import automatic_tags, snapshots
else:
    automatic_tags = LazyModule("manifest.expire.automatic_tags")
    snapshots = LazyModule("manifest.expire.snapshots")

_LOG = logger_of(__name__)


def after_commit(store: FileStore, newest: int | None, inputs: snapshots.ExpiryInputs | None) -> None:
    """Create tags and expire snapshots as the table's options say.

    ``newest`` is the id of the new snapshot.
    """
    steps: list[tuple[str, Callable[[], object]]] = []
    # Tags first: expiry keeps their files.
    if TAG_MODE in store.options.raw:
        steps.append(("creating tags failed", lambda: automatic_tags.make_tags(store, newest)))
    if not _has_few_snapshots(store, newest):
        steps.append(("expiring old snapshots failed", lambda: snapshots.expire_after_commit(store, newest, inputs)))
    for failure, step in steps:
        with suppress(OSError):
            try:
                step()
            except PaimonError:
                _LOG.warning("%s: the commit succeeded, but %s", store.root, failure, exc_info=True)


def _has_few_snapshots(store: FileStore, newest: int | None) -> bool:
    """Return whether there are too few snapshots to expire any."""
    # Checked before the expiry code is imported.
    options = store.options
    return newest is not None and newest <= max(options.snapshot_num_retained_min, 1) and not options.changelogs_outlive_snapshots
