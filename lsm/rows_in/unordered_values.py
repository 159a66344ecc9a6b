"""Warning about values of sequence groups that a merge ignores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from manifest.schema.merge_options import SequenceGroup
from paimon_base.log import logger_of
from paimon_base.texts import count_text

_LOG = logger_of(__name__)


@dataclass
class UnorderedValues:
    """Check of written rows for sequence groups without their sequence column.

    Logs one warning for each group.
    """

    table: str
    groups: tuple[SequenceGroup, ...]
    _warned: set[SequenceGroup] = field(default_factory=set)

    def check(self, rows: pa.Table) -> None:
        """Log a warning if ``rows`` have values that the merge ignores."""
        for group in self.groups:
            if group in self._warned or not all(rows.column(name).null_count for name in group.ordering):
                continue
            unordered: Any = True
            for name in group.ordering:
                unordered = pc.and_(unordered, pc.is_null(rows.column(name)))
            has_value: Any = False
            for name in group.protected:
                has_value = pc.or_(has_value, pc.is_valid(rows.column(name)))
            ignored = pc.sum(pc.and_(unordered, has_value)).as_py() or 0
            if ignored:
                self._warned.add(group)
                ordering = ",".join(group.ordering)
                _LOG.warning(
                    "%s: %s have values of the sequence group of '%s' and null there, so a merge ignores these values; set '%s', too "
                    "(fields.%s.sequence-group)",
                    self.table,
                    count_text(ignored, "row"),
                    ordering,
                    ordering,
                    ordering,
                )
