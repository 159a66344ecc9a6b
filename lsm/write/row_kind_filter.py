"""The kinds of rows that are written: from the call, or from the table's ``rowkind.field``; which are dropped, which refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.arrays import Int8s
from fileindex.base.lazy import cached_property
from lsm.arrow.row_kind import ROW_KINDS, retracts
from lsm.keys.encoding import one_array
from lsm.keys.sort import DELETE, UPDATE_BEFORE
from lsm.merge.engines import merge_function_for
from manifest.io.errors import SchemaMismatch, UnmergeableRows
from manifest.options.core_options import CoreOptions
from manifest.schema.table_schema import TableSchema


@dataclass(frozen=True)
class WriteKinds:
    """Row kinds for one table (Paimon's ``RowKindGenerator`` and ``RowKindFilter``)."""

    schema: TableSchema
    table: str = "the table"

    def of(self, rows: Any, given: Any = None) -> tuple[Any, Int8s | None]:
        """The rows to write and their kinds (None: all ``+I``); ``given`` kinds win over those of ``rowkind.field``.

        Raises:
            SchemaMismatch: kinds are missing or are none, or the table has no keys by which rows could be deleted.
            UnmergeableRows: the table's merge engine could never fold such a row.

        >>> from manifest.schema.validation import build_schema
        >>> options = {"bucket": "1", "rowkind.field": "op", "ignore-delete": "true"}
        >>> kinds = WriteKinds(build_schema("id INT, op STRING", primary_keys=["id"], options=options))
        >>> rows, numbers = kinds.of(pa.table({"id": [1, 2], "op": ["+U", "-D"]}))
        >>> rows["id"].to_pylist(), numbers.tolist()
        ([1], [2])
        """
        numbers = self._numbers(rows, given)
        if numbers is None:
            return rows, None
        retract = retracts(numbers)
        if not retract.any():
            return rows, numbers if numbers.any() else None
        if not self.schema.is_primary_key_table:
            raise SchemaMismatch(f"{self.table}: an append table has no keys, so rows cannot be deleted by writing '-D' or '-U'")
        options = self._options
        dropped = retract if options.ignore_delete else (numbers == UPDATE_BEFORE) & options.ignore_update_before
        if dropped.any():
            rows, numbers = rows.filter(pa.array(~dropped)), numbers[~dropped]
        for kind in (UPDATE_BEFORE, DELETE):
            reason = self._refusals[kind]
            if reason is not None and (numbers == kind).any():
                raise UnmergeableRows(f"{self.table}: rows of kind '{ROW_KINDS[kind]}' cannot be written: {reason}")
        return rows, numbers if numbers.any() else None

    @cached_property
    def _options(self) -> CoreOptions:
        return CoreOptions.of(self.schema.options)

    @cached_property
    def _refusals(self) -> dict[int, str | None]:
        fold = merge_function_for(self.schema)
        return {kind: fold.refusal(kind) for kind in (UPDATE_BEFORE, DELETE)}

    def _numbers(self, rows: Any, given: Any) -> Int8s | None:
        if given is None:
            name = self._options.rowkind_field
            return None if name is None else _parsed(rows.column(name), name)
        numbers: Int8s = one_array(given).cast(pa.int8()).to_numpy(zero_copy_only=False)
        if len(numbers) != rows.num_rows or (len(numbers) and not 0 <= numbers.min() <= numbers.max() <= 3):
            raise SchemaMismatch(f"row kinds are numbers from 0 to 3, one for each of the {rows.num_rows} rows")
        return numbers


def _parsed(column: Any, name: str) -> Int8s:
    texts = one_array(column)
    codes = pc.index_in(texts, value_set=pa.array(ROW_KINDS, texts.type))
    if codes.null_count:
        wrong = texts.filter(codes.is_null())[0].as_py()
        raise SchemaMismatch(f"column '{name}' (rowkind.field) holds {wrong!r}; it takes {', '.join(ROW_KINDS)}")
    numbers: Int8s = codes.to_numpy().astype(np.int8)
    return numbers


__all__ = ["WriteKinds"]
