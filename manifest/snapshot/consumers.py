"""Read positions of consumers, which expiry respects (Paimon's ``ConsumerManager``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from manifest.io.checksum import CHECKSUM_MEMBER, verify_checksum, with_checksum
from manifest.io.errors import UnsafeFileIO
from manifest.io.file_io import FileIO
from manifest.io.numbers import MAX_LONG
from manifest.io.paths import CONSUMER, TablePaths, consumer_name
from paimon_base.errors import CorruptFile
from paimon_base.log import logger_of

_LOG = logger_of(__name__)
LAST_READ = "lastRead"
"""Note of a consumer: its newest snapshot read, as ``[id, delta manifest list]``."""
_RACES = 10
"""Attempts to record a position beside concurrent writers. A position that is not recorded is only late."""


@dataclass(frozen=True, slots=True)
class ConsumerFiles:
    """Consumers of a table or branch, one small file each."""

    file_io: FileIO
    paths: TablePaths

    def consumers(self) -> dict[str, int]:
        """Return the next snapshot of each consumer. Raises ``CorruptFile``."""
        return {name: state["nextSnapshot"] for name, state in self.consumer_states().items()}

    def consumer_states(self) -> dict[str, dict[str, Any]]:
        """Return the recorded state of each consumer. Raises ``CorruptFile``."""
        states: dict[str, dict[str, Any]] = {}
        for status in self.file_io.list(self.paths.consumers):
            if status.name.startswith(CONSUMER) and not status.is_dir:
                name = status.name.removeprefix(CONSUMER)
                if (state := self.consumer(name)) is not None:
                    states[name] = state
        return states

    def consumer(self, name: str) -> dict[str, Any] | None:
        """Return the recorded state of a consumer, None without one.

        Has at least ``nextSnapshot``. Raises ``CorruptFile``, ``InvalidArgument``.
        """
        path = self.paths.consumer(consumer_name(name))
        try:
            return _parse(path, self.file_io.read(path))
        except FileNotFoundError:
            return None

    def record_consumer(self, name: str, following: int, **notes: object) -> None:
        """Record that a consumer reads snapshot ``following`` next.

        This snapshot and newer ones do not expire. Other engines ignore ``notes``.
        """
        path = self.paths.consumer(consumer_name(name))
        self.file_io.write(path, with_checksum(path, json.dumps({"nextSnapshot": following, **notes})), overwrite=True)

    def advance_consumer(self, name: str, following: int, ahead: Callable[[Mapping[str, Any]], bool], **notes: object) -> bool:
        """Record a position unless a farther one is recorded.

        Returns False if ``ahead`` accepts the recorded state, or if too many others record at the same time.
        """
        path = self.paths.consumer(consumer_name(name))
        content = with_checksum(path, json.dumps({"nextSnapshot": following, **notes}))
        # No progress is lost where the storage compares before it replaces. Elsewhere a concurrent record may be overwritten.
        for _ in range(_RACES):
            try:
                stored = self.file_io.read(path)
            except FileNotFoundError:
                if self.file_io.create_exclusive(path, content):
                    return True
                continue
            if ahead(_parse(path, stored)):
                return False
            try:
                if self.file_io.replace(path, stored, content):
                    return True
            except UnsafeFileIO:
                self.file_io.write(path, content, overwrite=True)
                return True
        _LOG.debug(
            "%s: did not record consumer '%s' at snapshot %d: other writers were faster %d times", self.paths.root, name, following, _RACES
        )
        return False

    def delete_consumer(self, name: str) -> bool:
        """Delete a consumer. Return False if it did not exist."""
        path = self.paths.consumer(consumer_name(name))
        return self.file_io.exists(path) and self.file_io.delete(path)

    def expire_consumers(self, older_than_ms: int) -> list[str]:
        """Delete consumers idle since ``older_than_ms`` and return their names.

        ``older_than_ms`` is in milliseconds since the epoch.
        """
        listed = self.file_io.list(self.paths.consumers)
        idle = [s for s in listed if s.name.startswith(CONSUMER) and not s.is_dir and s.mtime_ms < older_than_ms]
        return [name for status in idle if self.delete_consumer(name := status.name.removeprefix(CONSUMER))]


def _parse(path: str, content: bytes) -> dict[str, Any]:
    """Parse the content of a consumer's file. Raises ``CorruptFile``."""
    try:
        verify_checksum(path, content)
        state: dict[str, Any] = json.loads(content)
        state.pop(CHECKSUM_MEMBER, None)
        return {**state, "nextSnapshot": _snapshot_id(state["nextSnapshot"])}
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CorruptFile(path, "not a consumer file") from error


def _snapshot_id(value: Any) -> int:
    snapshot_id = int(value)
    if not 0 <= snapshot_id <= MAX_LONG:
        raise ValueError(f"no snapshot has id {snapshot_id}")
    return snapshot_id
