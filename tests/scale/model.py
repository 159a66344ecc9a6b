"""The rows that a table must have, as an Arrow table sorted by ``id``, changed by whole columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Model:
    """Rows of one merge engine. ``append``: ids are unique all the same."""

    def __init__(self, engine: str, schema: pa.Schema) -> None:
        self.engine = engine
        self.rows = schema.empty_table()

    @property
    def ids(self) -> Any:
        return self.rows.column("id").to_numpy()

    def add_column(self, name: str, kind: Any) -> None:
        self.rows = self.rows.append_column(name, pa.nulls(self.rows.num_rows, kind))

    def replace_column(self, name: str, new: str, kind: Any) -> None:
        at = self.rows.schema.get_field_index(name)
        self.rows = self.rows.set_column(at, new, self.rows.column(at).cast(kind))

    def delete(self, mask: Any) -> None:
        self.rows = self.rows.filter(pc.invert(mask))

    def update(self, mask: Any, name: str, value: Any) -> None:
        at = self.rows.schema.get_field_index(name)
        changed = pc.if_else(mask, pa.scalar(value, self.rows.schema.field(at).type), self.rows.column(at))
        self.rows = self.rows.set_column(at, name, changed)

    def write(self, new: pa.Table, deleted: Any = None) -> None:
        """Merge rows in their order; those that ``deleted`` marks take their key away."""
        if deleted is not None:
            last = _last(new.column("id").to_numpy())
            new, deleted = new.take(last), deleted[last]
            self._merge(new)
            self.rows = self.rows.filter(pc.invert(pc.is_in(self.rows.column("id"), new.column("id").filter(pa.array(deleted)))))
        elif self.engine == "deduplicate":
            self._merge(new.take(_last(new.column("id").to_numpy())))
        else:
            turns = _turns(new.column("id").to_numpy())
            for turn in range(int(turns.max(initial=-1)) + 1):
                self._merge(new.filter(pa.array(turns == turn)))

    def _merge(self, new: pa.Table) -> None:
        """Merge rows of different keys."""
        old, ids = self.rows, new.column("id").to_numpy()
        at = np.minimum(np.searchsorted(self.ids, ids), max(0, old.num_rows - 1))
        found = self.ids[at] == ids if old.num_rows else np.zeros(len(ids), bool)
        if self.engine == "append":
            assert not found.any()
        stay = np.ones(old.num_rows, bool)
        stay[at[found]] = self.engine == "first-row"
        parts = [old.filter(pa.array(stay)), new.filter(pa.array(~found))]
        if self.engine == "deduplicate":
            parts.append(new.filter(pa.array(found)))
        elif self.engine in {"partial-update", "aggregation"}:
            parts.append(self._folded(old.take(pa.array(at[found])), new.filter(pa.array(found))))
        self.rows = pa.concat_tables(parts).sort_by("id").combine_chunks()

    def _folded(self, old: pa.Table, new: pa.Table) -> pa.Table:
        columns = [self._fold(name, old.column(name), new.column(name)) for name in old.schema.names]
        return pa.Table.from_arrays(columns, schema=old.schema)

    def _fold(self, name: str, old: Any, new: Any) -> Any:
        if self.engine == "aggregation" and name == "n":
            return pc.coalesce(pc.add(old, new), new, old)
        # ``coalesce`` does not take nested types.
        return pc.if_else(pc.is_valid(new), new, old)


def _last(ids: Any) -> Any:
    """Return the positions of the last row of each id."""
    return len(ids) - 1 - np.unique(ids[::-1], return_index=True)[1]


def _turns(ids: Any) -> Any:
    """Return of each row how many rows before it have its id."""
    order = np.argsort(ids, kind="stable")
    new = np.concatenate([[True], ids[order][1:] != ids[order][:-1]]) if len(ids) else np.empty(0, bool)
    starts = np.maximum.accumulate(np.where(new, np.arange(len(ids)), 0))
    turns = np.empty(len(ids), np.int64)
    turns[order] = np.arange(len(ids)) - starts
    return turns


def difference(found: pa.Table, expected: pa.Table) -> str | None:
    """Describe how rows differ from those expected, whatever their order; None: not at all."""
    if found.schema.names != expected.schema.names:
        return f"columns {found.schema.names} instead of {expected.schema.names}"
    if found.num_rows != expected.num_rows:
        wrong = found.column("id").to_numpy(), expected.column("id").to_numpy()
        return f"{found.num_rows} rows instead of {expected.num_rows}; missing {np.setdiff1d(*wrong[::-1])[:5]}, extra {np.setdiff1d(*wrong)[:5]}"
    found = found.take(pa.array(np.argsort(found.column("id").to_numpy(), kind="stable"))).combine_chunks()
    for name in expected.schema.names:
        one, other = _bits(found.column(name)), _bits(expected.column(name))
        if one.type != other.type:
            return f"column {name}: {one.type} instead of {other.type}"
        if not one.equals(other):
            return f"column {name}: {_first(one, other, expected.column('id'))}"
    return None


def _first(found: Any, expected: Any, ids: Any) -> str:
    for at in range(len(ids)):
        if found[at] != expected[at] or found[at].is_valid != expected[at].is_valid:
            return f"id {ids[at]}: {str(found[at])[:200]} instead of {str(expected[at])[:200]}"
    return "chunks differ"


def _bits(column: Any) -> Any:
    """Values that are equal where their bits are."""
    whole = column.combine_chunks()
    return whole.view(pa.int64()) if pa.types.is_float64(column.type) else whole
