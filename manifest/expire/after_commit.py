"""What follows a commit: tags that are due, then snapshots that are too many. A failure is logged; the commit stands."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from fileindex.base.errors import PaimonError
from fileindex.base.log import logger_of
from manifest.expire.automatic_tags import make_tags
from manifest.expire.snapshots import FirstLook, expire_after_commit
from manifest.store import FileStore

_LOG = logger_of(__name__)


def after_commit(store: FileStore, newest: int | None, look: FirstLook | None) -> None:
    """Make tags and expire snapshots as the table's options say, ``newest`` being the commit's; tags first, for they spare files."""
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        ("its tags could not be made", partial(make_tags, store, newest)),
        ("old snapshots could not be expired", partial(expire_after_commit, store, newest, look)),
    )
    for failure, step in steps:
        with suppress(OSError):
            try:
                step()
            except PaimonError:
                _LOG.warning("%s: the commit stands, but %s", store.root, failure, exc_info=True)


__all__ = ["after_commit"]
