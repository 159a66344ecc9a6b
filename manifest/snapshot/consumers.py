"""Consumers: how far each reader of a table has come, which holds expiry back (Paimon's ``ConsumerManager``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fileindex.base.errors import CorruptFile
from fileindex.base.log import logger_of
from manifest.io.errors import UnsafeFileIO
from manifest.io.file_io import FileIO
from manifest.io.paths import CONSUMER, TablePaths, consumer_name
from manifest.io.seal import SEAL, check_seal, sealed

_LOG = logger_of(__name__)
_RACES = 10
"""Times that one tries to record while others do; a position that is not recorded is only late."""


@dataclass(frozen=True, slots=True)
class ConsumerFiles:
    """The consumers of a table or branch, a small file each."""

    file_io: FileIO
    paths: TablePaths

    def next_for_consumers(self) -> int | None:
        """The smallest snapshot id that a registered consumer has yet to read. Raises ``CorruptFile``."""
        return min(self.consumers().values(), default=None)

    def consumers(self) -> dict[str, int]:
        """The snapshot that each registered consumer reads next. Raises ``CorruptFile``."""
        following: dict[str, int] = {}
        for status in self.file_io.list(self.paths.consumers):
            if status.name.startswith(CONSUMER) and not status.is_dir:
                name = status.name.removeprefix(CONSUMER)
                if (found := self.consumer(name)) is not None:
                    following[name] = found["nextSnapshot"]
        return following

    def consumer(self, name: str) -> dict[str, Any] | None:
        """What a consumer recorded, ``nextSnapshot`` at least; None if there is none of that name. Raises ``CorruptFile``, ``InvalidArgument``."""
        path = self.paths.consumer(consumer_name(name))
        try:
            return _recorded(path, self.file_io.read(path))
        except FileNotFoundError:
            return None

    def record_consumer(self, name: str, following: int, **notes: object) -> None:
        """Say that a consumer reads snapshot ``following`` next: it and all newer ones do not expire. Other engines pass over ``notes``."""
        path = self.paths.consumer(consumer_name(name))
        self.file_io.write(path, sealed(path, json.dumps({"nextSnapshot": following, **notes})), overwrite=True)

    def advance_consumer(self, name: str, following: int, ahead: Callable[[Mapping[str, Any]], bool], **notes: object) -> bool:
        """As ``record_consumer``, unless ``ahead`` says of what is recorded that it is farther; False then, and if too many others record.

        Nobody's progress is undone by a race, where storage compares before it replaces; elsewhere one that records at the same moment may be.
        """
        path = self.paths.consumer(consumer_name(name))
        content = sealed(path, json.dumps({"nextSnapshot": following, **notes}))
        for _ in range(_RACES):
            try:
                held = self.file_io.read(path)
            except FileNotFoundError:
                if self.file_io.create_exclusive(path, content):
                    return True
                continue
            if ahead(_recorded(path, held)):
                return False
            try:
                if self.file_io.replace(path, held, content):
                    return True
            except UnsafeFileIO:
                self.file_io.write(path, content, overwrite=True)
                return True
        _LOG.debug(
            "%s: consumer '%s' is not recorded at snapshot %d: others were faster, %d times", self.paths.root, name, following, _RACES
        )
        return False

    def delete_consumer(self, name: str) -> bool:
        """Forget a consumer; False if there was none of that name."""
        path = self.paths.consumer(consumer_name(name))
        return self.file_io.exists(path) and self.file_io.delete(path)

    def expire_consumers(self, older_than_ms: int) -> list[str]:
        """Forget the consumers that have recorded nothing since then (milliseconds since the epoch); their names."""
        listed = self.file_io.list(self.paths.consumers)
        idle = [s for s in listed if s.name.startswith(CONSUMER) and not s.is_dir and s.mtime_ms < older_than_ms]
        return [name for status in idle if self.delete_consumer(name := status.name.removeprefix(CONSUMER))]


def _recorded(path: str, content: bytes) -> dict[str, Any]:
    """What a consumer's file says. Raises ``CorruptFile``."""
    try:
        check_seal(path, content)
        found: dict[str, Any] = json.loads(content)
        found.pop(SEAL, None)
        return {**found, "nextSnapshot": int(found["nextSnapshot"])}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CorruptFile(path, "not a consumer file") from error


__all__ = ["ConsumerFiles"]
