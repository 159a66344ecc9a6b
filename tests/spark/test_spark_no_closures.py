"""What a client sends is plans, options and rows: in no operation of a table is there a function, a class or a pickle.

So a client of any Python version works, and a server has nothing to unpickle that came from one.
"""

from __future__ import annotations

import json
import pickletools

import pyarrow as pa
import pytest
from google.protobuf.message import Message

from pyspark_paimon import Table

pytestmark = pytest.mark.spark

CODE = (
    "udf",
    "udtf",
    "userdefined",
    "pythondatasource",
    "foreachfunction",
    "mappartitions",
    "groupmap",
    "cogroupmap",
    "pickle",
    "command_class",
)
RELATION_DATA = {"spark.connect.LocalRelation.data", "spark.connect.ChunkedCachedLocalRelation.dataHashes"}


class Recorder:
    """The client's stub, which remembers every request."""

    def __init__(self, stub):
        self.stub, self.requests = stub, []

    def __getattr__(self, name):
        call = getattr(self.stub, name)

        def recorded(request, *args, **kwargs):
            if name == "AddArtifacts":
                request = list(request)
                self.requests += request
                return call(iter(request), *args, **kwargs)
            self.requests.append(request)
            return call(request, *args, **kwargs)

        return recorded


def fields(message: Message):
    """Every field that is set, at any depth, with its value."""
    for field, value in message.ListFields():
        many = value if field.is_repeated else [value]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            many = list(value.values())
        for one in many:
            yield field, one
            if isinstance(one, Message):
                yield from fields(one)


def is_pickle(data: bytes) -> bool:
    try:
        return any(op.name == "PROTO" for op, _, _ in pickletools.genops(data))
    except (ValueError, IndexError, UnicodeDecodeError):
        return False


@pytest.fixture
def sent(spark, monkeypatch):
    recorder = Recorder(spark.client._stub)
    monkeypatch.setattr(spark.client, "_stub", recorder)
    return recorder


DDL = "id BIGINT, day INT, city STRING"
SHAPES = {
    "fixed buckets": {"primary_keys": ["day", "id"], "partition_keys": ["day"], "options": {"bucket": "3"}},
    "text key": {"primary_keys": ["city"], "options": {"bucket": "2"}},
    "dynamic buckets": {"primary_keys": ["id"], "options": {"bucket": "-1"}},
    "deletion vectors": {"primary_keys": ["id"], "options": {"bucket": "2", "deletion-vectors.enabled": "true"}},
    "append": {"options": {"file-index.bloom-filter.columns": "id"}},
    "bucketed append": {"options": {"bucket": "2", "bucket-key": "id"}},
}


def everything(spark, path, shape):
    table = Table.create(path, DDL, spark=spark, **shape)
    rows = spark.range(0, 60, 1, 2).selectExpr("id", "cast(id % 3 AS int) AS day", "'city ' || id AS city")
    table.write(rows)
    table.write(pa.table({"id": [1, 2], "day": pa.array([1, 2], pa.int32()), "city": ["a", "b"]}))
    table.write(rows.limit(20), mode="overwrite")
    table.delete("id = 3")
    if table.primary_keys != ("city",):
        table.update("id = 4", values={"city": "moved"})
    table.compact(full=True)
    table.scan("city LIKE 'c%' OR id IN (1, 2)", columns=["id"]).to_arrow()
    table.scan("id = 5").count()
    table.scan(order_by="id", limit=3).to_arrow()
    table.scan("id > 5").to_spark().collect()
    table.scan("id = 5").explain(analyze=True)
    table.scan().plan()
    table.tree("id = 5")
    table.files(), table.snapshots(), table.file_indexes(), table.index_health(), table.tags(), table.partitions()
    table.rewrite_file_index()
    table.analyze()
    table.create_tag("t")
    table.alter_options({"snapshot.num-retained.min": "1"})
    table.expire_snapshots(retain_min=1, retain_max=1)
    table.list_orphan_files()
    table.remove_orphan_files()


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", ["fixed buckets", *(pytest.param(name, marks=pytest.mark.long) for name in SHAPES if name != "fixed buckets")]
)
def test_no_request_of_any_operation_of_a_table_holds_code(spark, sent, tmp_path, shape):
    everything(spark, tmp_path / "t", SHAPES[shape])
    assert len(sent.requests) > 40
    commands, options = set(), 0
    for request in sent.requests:
        for field, value in fields(request):
            name = field.full_name
            assert not any(word in name.lower() for word in CODE), f"{name} in {type(request).__name__}"
            if isinstance(value, bytes) and name not in RELATION_DATA:
                assert not is_pickle(value), name
            if isinstance(value, Message):
                commands.add(value.DESCRIPTOR.name)
            if isinstance(value, str) and value.startswith('{"'):
                json.loads(value)
                options += 1
    assert {"WriteOperation", "Read"} <= commands
    assert options > 40


def test_a_function_would_be_noticed(spark, sent):
    from pyspark.sql import functions as F  # noqa: N812  # Spark's own spelling

    spark.range(3).select(F.udf(lambda x: x, "bigint")("id")).schema  # noqa: B018
    names = {field.full_name.lower() for request in sent.requests for field, _ in fields(request)}
    assert any(word in name for name in names for word in CODE)
    assert any(isinstance(value, bytes) and is_pickle(value) for request in sent.requests for _, value in fields(request))
