"""The seam to Avro data files: columns and runs of blocks in, Arrow batches out. Avro has neither statistics nor checksums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fileindex.base.column_type import BINARIES, STRINGS, TIMESTAMPS, Kind
from fileindex.base.lazy import cached_property
from lsm.avro.blocks import AvroBlocks
from lsm.avro.decoder import decode_blocks
from lsm.avro.shapes import Shape, shape_of
from lsm.formats.whole_groups import WholeGroupFile
from lsm.parquet.footer import RowGroup
from lsm.parquet.footer_promise import BrokenPromise, FooterPromise
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from manifest.types.data_type import DataType

_INTEGERS = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT})
_KINDS: Mapping[Kind, str] = {
    Kind.BOOLEAN: "boolean",
    **dict.fromkeys((*_INTEGERS, Kind.DATE, Kind.TIME), "int"),
    **dict.fromkeys((Kind.BIGINT, *TIMESTAMPS), "long"),
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    **dict.fromkeys(STRINGS, "string"),
    **dict.fromkeys((*BINARIES, Kind.DECIMAL), "bytes"),
    **dict.fromkeys((Kind.ARRAY, Kind.VECTOR), "array"),
    **dict.fromkeys((Kind.MAP, Kind.MULTISET), "map"),
    Kind.ROW: "record",
}


class AvroDataFile(WholeGroupFile):
    """An open Avro data file (``lsm.formats.open_data_file``).

    Args:
        file_io: where the file lies.
        path: the file.
        promise: what the metadata say of it; None if they are not known.
        files: keeps the blocks' places for the next time; None: they are read from the file.

    Raises:
        CorruptFile: the file is missing, is no Avro file, or not what its metadata promise.
    """

    FORMAT = "Avro"

    def __init__(self, file_io: FileIO, path: str, promise: FooterPromise | None = None, files: FileCache | None = None) -> None:
        super().__init__(file_io, path)
        try:
            with self.decoding():
                self._blocks = self._read_blocks() if files is None else files.load(file_io, path, "blocks", self._read_blocks, _weight)
                self._shape, self._branch = shape_of(self._blocks.schema)
                if promise is not None and promise.key not in self._blocks.kept:
                    _check(promise, self._blocks, self._shape, int(self.source.size()))
                    self._blocks.kept.add(promise.key)
        except BaseException:
            self.close()
            raise

    def _read_blocks(self) -> AvroBlocks:
        return AvroBlocks.read(self.read_range, int(self.source.size()))

    @cached_property
    def schema(self) -> Any:
        """See ``OpenDataFile``."""
        return pa.schema(list(self._shape.arrow))

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """Runs of neighbouring blocks."""
        return self._blocks.row_groups

    def compressed_size(self, columns: Sequence[str], groups: Sequence[RowGroup]) -> int:
        """See ``OpenDataFile``: rows are read whole."""
        return sum(group.size for group in groups) if columns else 0

    def decoded(self, columns: Sequence[str], group: RowGroup) -> Any:
        """See ``WholeGroupFile``."""
        blocks = self._blocks.content(self.path, self.read_range, group.index)
        return decode_blocks(self._shape, blocks, columns, branch=self._branch)


def _weight(blocks: AvroBlocks) -> int:
    return blocks.weight


def _check(promise: FooterPromise, blocks: AvroBlocks, shape: Shape, size: int) -> None:
    """Raises ``BrokenPromise`` if the file is not what its metadata say."""
    promise.check_size(sum(group.num_rows for group in blocks.row_groups), size)
    there = dict(zip(shape.names, shape.children, strict=True))
    for column in promise.columns(there):
        if not _fits(there[column.name], column.type):
            raise BrokenPromise(f"column '{column.name}' is stored as another type than {column.type}")


def _fits(shape: Shape, type_: DataType) -> bool:
    if type_.kind not in _KINDS:
        return True  # whoever reads it is told that it cannot be
    if shape.kind != _KINDS[type_.kind]:
        return False
    match type_.kind:
        case Kind.DECIMAL:
            return bool(shape.arrow == pa.decimal128(type_.precision, type_.scale))
        case Kind.ARRAY | Kind.VECTOR | Kind.MULTISET:
            return _fits(shape.children[0], type_.part("element"))
        case Kind.MAP:
            return all(_fits(child, type_.part(part)) for child, part in zip(shape.children, ("key", "value"), strict=True))
        case Kind.ROW:
            there = dict(zip(shape.names, shape.children, strict=True))
            return all(field.name in there and _fits(there[field.name], field.type) for field in type_.fields)
        case _:
            return True


__all__ = ["AvroDataFile"]
