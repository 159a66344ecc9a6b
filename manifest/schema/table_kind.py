"""Kinds of table: with a primary key, or append-only (Paimon's ``KeyValueFileStore`` and ``AppendOnlyFileStore``).

A schema makes its kind once. A kind knows what the key means for options, files and versions of rows. Other modules ask it instead of
asking for the primary key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from manifest.options.core_options import CoreOptions
from manifest.options.support import check_merges, check_readable

_MIB = 1 << 20


@dataclass(frozen=True)
class TableKind(ABC):
    """Properties of a table that depend on its primary key.

    Args:
        options: Typed options of the table.
    """

    options: CoreOptions

    write_mode: ClassVar[Literal["append", "upsert"]]
    """Mode of a write without argument ``mode``."""
    changes_files: ClassVar[bool]
    """Whether deletes and updates change files. False: they write versions of rows."""
    has_row_kinds: ClassVar[bool]
    """Whether files store a kind and a sequence number of each row."""
    _file_size: ClassVar[int]

    @cached_property
    def target_file_size(self) -> int:
        """Bytes at which a data file is closed."""
        return self.options.target_file_size or self._file_size

    def check_readable(self, table: str) -> None:
        """Raise ``UnsupportedTable`` if reads would return wrong rows."""
        check_readable(self.options, table)

    @property
    @abstractmethod
    def has_single_version(self) -> bool:
        """Whether a key has one visible version above level 0.

        True for tables with deletion vectors or first-row. Files above level 0 need no merge. Other engines omit level 0 of such a table. This
        package merges it in, unless ``FileStore.skips_level0``.
        """

    @property
    @abstractmethod
    def prunes_by_value(self) -> bool:
        """Whether a file without matching value has no matching row."""

    @property
    @abstractmethod
    def orders_by_sequence(self) -> bool:
        """Whether the greater sequence number of a key is newer."""

    @property
    @abstractmethod
    def has_lookup_readers(self) -> bool:
        """Whether readers wait for compactions.

        Other engines, or readers of the changelog, see rows only after a compaction.
        """

    @property
    @abstractmethod
    def top_level(self) -> int:
        """Lowest level of a read-optimized read."""

    @property
    @abstractmethod
    def logged_level(self) -> int:
        """Lowest level whose rows are in the changelog."""


class KeyValueTable(TableKind):
    """Table with a primary key: files hold versions of rows."""

    write_mode = "upsert"
    changes_files = False
    has_row_kinds = True
    _file_size = 128 * _MIB

    def check_readable(self, table: str) -> None:
        """Raise ``UnsupportedTable`` if reads would return wrong rows."""
        check_merges(self.options, table)
        super().check_readable(table)

    @cached_property
    def has_single_version(self) -> bool:  # noqa: D102  # see TableKind
        return self.options.deletion_vectors_enabled or self.options.engine.first_row_wins

    @property
    def prunes_by_value(self) -> bool:  # noqa: D102  # see TableKind
        return self.has_single_version

    @property
    def orders_by_sequence(self) -> bool:  # noqa: D102  # see TableKind
        return not self.options.sequence_field

    @property
    def has_lookup_readers(self) -> bool:  # noqa: D102  # see TableKind
        return self.options.needs_lookup or self.options.compacts_fully_at_commit

    @property
    def top_level(self) -> int:  # noqa: D102  # see TableKind
        return self.options.max_level

    @property
    def logged_level(self) -> int:  # noqa: D102  # see TableKind
        return {"lookup": 1, "full-compaction": self.options.max_level}.get(self.options.changelog_producer, 0)


class AppendTable(TableKind):
    """Table without primary key: the rows of its files are its rows."""

    write_mode = "append"
    changes_files = True
    has_row_kinds = False
    has_single_version = False
    prunes_by_value = True
    orders_by_sequence = False
    has_lookup_readers = False
    top_level = 0
    logged_level = 0
    _file_size = 256 * _MIB
