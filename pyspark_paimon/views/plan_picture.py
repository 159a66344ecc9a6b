"""Plans of scans as notebooks show them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from lsm.scan.plan import ScanPlan
from manifest.schema.table_schema import TableSchema
from paimon_base.plugins import plugin


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlanPicture(ScanPlan):
    """A ``ScanPlan`` that notebooks show as a picture.

    It equals a ``ScanPlan`` of the same values. ``table_schema`` is needed to decode keys.
    """

    table_schema: TableSchema | None = field(default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScanPlan) and all(getattr(self, member.name) == getattr(other, member.name) for member in fields(ScanPlan))

    def __hash__(self) -> int:
        return hash((self.snapshot_id, self.splits, self.report))

    def _repr_html_(self) -> str:
        text: str = plugin("page", "plan")(self, self.table_schema)
        return text
