"""The bytes of payloads, as Paimon's engine writes them."""

from __future__ import annotations

import pytest

from fileindex.sorted_index.build_options import SortedIndexKind
from fileindex.sorted_index.index_meta import SortedIndexMeta
from sparkexpr.values.column_type import ColumnType, Kind
from tests.fileindex.sorted_index.payloads import build

INT, TEXT = ColumnType(Kind.INT), ColumnType(Kind.VARCHAR)
VECTORS = {
    "numbers": (
        INT,
        [7, None, 7, 1000, -2],
        "16kb",
        "04000000feffffff04000000e8030000010100",
        {
            "btree": (
                "04feffffff02010404070000000302000204e8030000020103000000000800000011000000030000000100c3919a6b0100000000000000"
                "000000003a3000000100000000000000100000000100318534e304e803000002002a08000000000031c47be20000000000000000000000"
                "00000000000000000051000000000000000d0000002f000000000000001e0000000100000049544250"
            ),
            "bitmap": (
                "0100000000000000000000003a30000001000000000000001000000004000100000000000000000000003a300000010000000000010010"
                "000000000002000100000000000000000000003a30000001000000000000001000000003000304feffffff001e04070000001e2004e803"
                "00003e1e009c6062230100000000000000000000003a30000001000000000000001000000001000100000000000000000000003a300000"
                "01000000000003001000000000000200030004000104feffffff5c16002147e2c800000000000000770000001e00000000000000950000"
                "002400000000000000b900000008000000030000000142474958"
            ),
        },
    ),
    "texts": (
        TEXT,
        ["b", "a", None, "b"],
        "16kb",
        "01000000610100000062010100",
        {
            "btree": (
                "0161020101016203020003000000000500000002000000010087106d970100000000000000000000003a30000001000000000000001000"
                "00000200f2d619c80162020018050000000000fdd1115500000000000000000000000000000000000000003f000000000000000a000000"
                "1d000000000000001e0000000100000049544250"
            ),
            "bitmap": (
                "0100000000000000000000003a30000001000000000000001000000001000100000000000000000000003a300000010000000000010010"
                "00000000000300020161001e01621e200026d3eafa0100000000000000000000003a300000010000000000000010000000020001000000"
                "00000000000000003a3000000100000000000200100000000000010003000101613e090003b8533b000000000000004c0000001e000000"
                "000000006a00000022000000000000008c00000005000000020000000142474958"
            ),
        },
    ),
    "nulls": (
        INT,
        [None, None, None],
        "16kb",
        "0000000000000000010103",
        {
            "btree": (
                "0100000000000000000000003a3000000100000000000200100000000000010002005b91e9a1000000000100e290d9a800000000000000"
                "000000000000000000000000002600000000000000050000000000000000000000220000000100000049544250"
            ),
        },
    ),
    "blocks": (
        TEXT,
        ["", "a", "ab", "b", "a"],
        16,
        "000000000100000062000100",
        {
            "btree": (
                "0002010001610302010400000000040000000200000001004cd5e0c702616202010201620201030000000006000000020000000100401b"
                "62b601610200170162021c1805000000000064c07a35000000000000000000000000000000000000000039000000000000000f00000000"
                "00000000000000000000000100000049544250"
            ),
            "bitmap": (
                "0100000000000000000000003a30000001000000000000001000000000000100000000000000000000003a300000010000000000010010"
                "000000010004000100000000000000000000003a30000001000000000000001000000002000100000000000000000000003a3000000100"
                "0000000000001000000003000300001e01611e200261623e1e00b6600dd10101625c1e00358c3667000000000000000001000000000000"
                "00000000003b300000010000040001000000040002007a0d01628c010500aa34ac48000000000000009600000008000000000000009e00"
                "00001b00000000000000b900000009000000040000000142474958"
            ),
        },
    ),
}

"""Column type, values, block size, ``_INDEX_META``, and the payload of each kind."""
CASES = [pytest.param(name, kind, id=f"{name}-{kind}") for name, vector in VECTORS.items() for kind in vector[4]]


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("step", [1, 1000])
def test_payloads_have_the_bytes_of_the_engine(name, kind, step):
    column_type, values, block_size, meta, payloads = VECTORS[name]
    built = build(SortedIndexKind(kind), column_type, values, block_size=block_size, step=step)
    assert built.data.hex() == payloads[kind]
    assert built.meta.encode().hex() == meta
    assert SortedIndexMeta.parse(bytes.fromhex(meta)) == built.meta


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_payloads_of_the_engine_have_its_values(name, kind):
    column_type, values, block_size, _, payloads = VECTORS[name]
    built = build(SortedIndexKind(kind), column_type, values, block_size=block_size)
    reader = built.open(bytes.fromhex(payloads[kind]))
    rows = {
        value: block.ordinals[start:end].tolist()
        for block in reader.walk()
        for value, start, end in zip(block.values.to_pylist(), block.starts[:-1], block.starts[1:], strict=True)
    }
    expected = {value: [row for row, other in enumerate(values) if other == value] for value in values}
    assert {**rows, None: list(reader.nulls())} == {None: [], **expected}


def test_a_set_whose_runs_take_the_bytes_of_its_rows_has_no_runs() -> None:
    present = (1, 2, 3, 4, 5, 7, 8, 10, 12, 15, 16, 18, 19, 22, 24, 25, 26)
    payload = build(SortedIndexKind.BITMAP, INT, [1 if row in present else None for row in range(27)]).data
    ordinals = "".join(row.to_bytes(2, "little").hex() for row in present)
    assert payload.hex().count(f"3a300000010000000000100010000000{ordinals}") == 2
