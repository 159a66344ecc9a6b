"""The golden tables of data files in ORC and Avro, and of several formats at once."""

from __future__ import annotations

from tests.interop.made_rows import ALL_TYPES, BASE
from tests.interop.spec_parts import ADDED_AGAIN, BUCKETS, EVOLUTION, INDEXES, UNAWARE, VECTORS, appended, keyed
from tests.interop.specs import FULL, MINOR, Alter, Spec, commits

ORC, AVRO, MIXED = "ORC data files", "Avro data files", "data files of several formats"
AVRO_TYPES = {name: kind for name, kind in ALL_TYPES.items() if name != "c_ts9"}
"""Avro has nothing finer than microseconds."""
_SECOND = "2026-01-02T03:04:05"
ORC_TIMES = {
    "c_ts3": ["1960-01-01T00:00:00", "1969-12-31T23:59:59", f"{_SECOND}.678", None],
    "c_ts6": ["1700-02-28T00:00:00", "1969-12-31T23:59:59", f"{_SECOND}.678901", "2250-12-31T23:59:59.999999", None],
    "c_ts9": ["1969-12-31T23:59:58", f"{_SECOND}.678901234", "1970-01-01T00:00:00.000000001", None],
    "c_ltz3": ["1960-01-01T00:00:00Z", "1969-12-31T23:59:58Z", f"{_SECOND}.678Z", None],
    "c_ltz6": ["1700-02-28T00:00:00Z", f"{_SECOND}.678901Z", None],
    "c_deep": [[{"k": "q", "v": f"{_SECOND}.000001"}], [{"k": None, "v": None}, None], [], None],
}
"""No fractions before 1970: ours writes none, and the engine takes those of the last second for the next one's; no year beyond nanoseconds."""


def _as(file_format: str) -> dict[str, str]:
    return {"file.format": file_format}


def _becomes(file_format: str) -> Alter:
    return Alter(({"change": "set", "key": "file.format", "value": file_format},))


_MARKED = commits(120, 120, FULL, 10, MINOR, 10, MINOR, ids=range(-50, 260))

FORMATS = (
    Spec("orc_types", "append, ORC, every type", ORC, ALL_TYPES, appended(), options={**UNAWARE, **_as("orc")}, pools=ORC_TIMES),
    Spec(
        "orc_types_pk",
        "PK, ORC, every type, compacted",
        ORC,
        ALL_TYPES,
        commits(40, 30, FULL, 20),
        ("id",),
        pools=ORC_TIMES,
        options={**BUCKETS, **_as("orc")},
    ),
    keyed("orc_pk", "PK, ORC with file indexes: top level plus level 0", ORC, commits(61, FULL, 12, 13), **INDEXES, **_as("orc")),
    Spec("orc_dv", "PK, ORC with deletion vectors", ORC, BASE, _MARKED, ("id",), options={**INDEXES, **BUCKETS, **VECTORS, **_as("orc")}),
    Spec(
        "orc_evolved",
        "append, ORC, schema evolution",
        ORC,
        BASE,
        commits(36, Alter(EVOLUTION), 39, Alter(ADDED_AGAIN)),
        options={**UNAWARE, **_as("orc")},
    ),
    keyed(
        "orc_lz4",
        "PK, ORC compressed with LZ4, stripes of their own options",
        ORC,
        commits(61, 12),
        **_as("orc"),
        **{"file.compression": "lz4"},
    ),
    Spec("avro_types", "append, Avro, every type it has", AVRO, AVRO_TYPES, appended(), options={**UNAWARE, **_as("avro")}),
    Spec(
        "avro_types_pk",
        "PK, Avro, every type it has, compacted",
        AVRO,
        AVRO_TYPES,
        commits(40, 30, FULL, 20),
        ("id",),
        options={**BUCKETS, **_as("avro")},
    ),
    Spec(
        "avro_dv",
        "PK, Avro with deletion vectors and file indexes",
        AVRO,
        BASE,
        _MARKED,
        ("id",),
        options={**INDEXES, **BUCKETS, **VECTORS, **_as("avro")},
    ),
    Spec(
        "avro_evolved",
        "append, Avro, schema evolution",
        AVRO,
        BASE,
        commits(36, Alter(EVOLUTION), 39, Alter(ADDED_AGAIN)),
        options={**UNAWARE, **_as("avro")},
    ),
    keyed(
        "formats_by_level",
        "PK, Avro on level 0, ORC on the deepest, Parquet between; the changelog in Avro",
        MIXED,
        commits(40, 30, FULL, 20, 15),
        **{
            "file.format.per.level": "0:avro,5:orc",
            "file.compression.per.level": "0:zstd,5:lz4",
            "changelog-producer": "input",
            "changelog-file.format": "avro",
        },
    ),
    Spec(
        "formats_in_turn",
        "append, the format changed twice, compacted never",
        MIXED,
        BASE,
        commits(20, _becomes("orc"), 20, _becomes("avro"), 20),
        options=UNAWARE,
    ),
)
