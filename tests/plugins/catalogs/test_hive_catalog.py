"""The Hive catalog on a real metastore: entries as Paimon writes them, changes of columns, locks, crashes, and what it refuses."""

from __future__ import annotations

import io
import os
import pickle
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.io.errors import CommitConflict
from manifest.io.file_io import LocalFileIO
from manifest.schema.validation import build_schema
from manifest.types.data_type import DataType
from pyspark_paimon import (
    Catalog,
    CatalogUnavailable,
    DatabaseExists,
    DatabaseNotFound,
    HiveCatalog,
    InvalidArgument,
    Table,
    TableExists,
    TableNotFound,
    UnsupportedOption,
)
from pyspark_paimon.plugins.catalogs.hive.locked import LockedFileIO, LockOptions
from pyspark_paimon.plugins.catalogs.hive.metastore import Metastore, user_name
from pyspark_paimon.plugins.catalogs.hive.options import HiveOptions
from pyspark_paimon.plugins.catalogs.hive.tables import hive_type
from pyspark_paimon.plugins.catalogs.hive.views import fields_of_view, view_entry, view_parameters
from pyspark_paimon.plugins.catalogs.hive.wire import (
    BadMessage,
    Items,
    Pairs,
    Wire,
    decode_answer,
    encode_call,
    long,
    record,
    records,
    text,
    texts,
    value_of,
)
from tests.stores.hive_server import HiveServer
from tests.stores.local_server import held

served = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def metastore():
    yield from held(HiveServer())


@pytest.fixture
def options(metastore):
    return metastore.options()


@pytest.fixture
def database(tmp_path):
    return f"db_{tmp_path.name.replace('-', '_').lower()}"


@pytest.fixture
def catalog(tmp_path, options, database):
    catalog = Catalog(tmp_path / "warehouse", options)
    catalog.create_database(database)
    return catalog


def entry(catalog, name):
    """The entry's columns, properties (but for those of the metastore), location and classes."""
    found = catalog._entry(name)
    storage = value_of(found, 7)
    columns = [(value_of(one, 1), value_of(one, 2), value_of(one, 3)) for one in value_of(storage, 1)]
    parameters = {key: value for key, value in value_of(found, 9).items() if key not in {"transient_lastDdlTime", "totalSize", "numFiles"}}
    return {
        "columns": columns,
        "parameters": parameters,
        "location": value_of(storage, 2),
        "classes": (value_of(storage, 3), value_of(storage, 4), value_of(value_of(storage, 7), 2)),
        "type": value_of(found, 12),
        "partitions": value_of(found, 8),
    }


CLASSES = (
    "org.apache.paimon.hive.mapred.PaimonInputFormat",
    "org.apache.paimon.hive.mapred.PaimonOutputFormat",
    "org.apache.paimon.hive.PaimonSerDe",
)
PROPERTIES = {"table_type": "PAIMON", "storage_handler": "org.apache.paimon.hive.PaimonStorageHandler"}


class TestOnAMetastore:
    pytestmark = served

    def test_an_entry_is_as_paimon_writes_it(self, catalog, database, tmp_path):
        name = f"{database}.t"
        schema = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string()), pa.field("m", pa.map_(pa.string(), pa.int32()))])
        catalog.create_table(name, schema, ["id", "day"], ["day"], {"bucket": "2"}, comment="sold")
        assert entry(catalog, name) == {
            "columns": [("id", "bigint", None), ("day", "string", None), ("m", "map<string,int>", None)],
            "parameters": {**PROPERTIES, "bucket": "2", "bucket-key": "id", "primary-key": "id,day", "partition": "day", "comment": "sold"},
            "location": f"file:{tmp_path}/warehouse/{database}.db/t",
            "classes": CLASSES,
            "type": "MANAGED_TABLE",
            "partitions": [],
        }
        assert catalog.list_tables(database) == ["t"]

    def test_rows_are_written_and_the_table_is_renamed_and_dropped(self, catalog, database, tmp_path):
        table = catalog.create_table(f"{database}.t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
        table.write({"id": [1], "v": ["a"]})
        assert catalog.table(f"{database}.t").count() == catalog.table(f"{database}.t$snapshots").count() == 1
        with pytest.raises(TableExists):
            catalog.create_table(f"{database}.t", "id BIGINT")
        catalog.create_database(f"{database}_2")
        catalog.rename_table(f"{database}.t", f"{database}_2.u")
        moved = catalog.table(f"{database}_2.u")
        assert (moved.count(), moved.path) == (1, f"{tmp_path}/warehouse/{database}_2.db/u")
        assert entry(catalog, f"{database}_2.u")["location"] == f"file:{moved.path}"
        assert catalog.list_tables(database) == []
        with pytest.raises(InvalidArgument, match="has tables: u"):
            catalog.drop_database(f"{database}_2")
        assert catalog.drop_table(f"{database}_2.u", dry_run=True).snapshots == 1
        catalog.drop_table(f"{database}_2.u")
        assert not Path(moved.path).exists()
        catalog.drop_database(f"{database}_2")
        assert f"{database}_2" not in catalog.list_databases()
        with pytest.raises(TableNotFound, match="in the metastore"):
            catalog.table(f"{database}.t")
        with pytest.raises(DatabaseNotFound, match=r"known databases: .*default"):
            catalog.table("nowhere.t")

    def test_changes_of_the_schema_reach_the_metastore_and_strangers_properties_stay(self, catalog, database):
        name = f"{database}.t"
        table = catalog.create_table(name, "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
        before = catalog._entry(name)
        stranger = {**value_of(before, 9), "made.by": "somebody"}
        catalog._metastore.alter_table(database, "t", {**before, 9: (Wire.MAP, Pairs(Wire.STRING, Wire.STRING, stranger))})
        table.add_column("n", "DECIMAL(10, 2)", comment="x" * 300 + "\n")
        table.rename_column("v", "w")
        table.alter_options({"snapshot.num-retained.min": "3"})
        found = entry(catalog, name)
        assert found["columns"][:2] == [("id", "bigint", None), ("w", "string", None)]
        assert found["columns"][2][:2] == ("n", "decimal(10,2)")
        assert found["columns"][2][2] == "x" * 252 + "..."
        assert found["parameters"]["snapshot.num-retained.min"] == "3"
        table.alter_options({"snapshot.num-retained.min": None})
        after = entry(catalog, name)["parameters"]
        assert ("snapshot.num-retained.min" in after, after["made.by"]) == (False, "somebody")

    def test_partition_keys_of_another_engine_stay(self, catalog, database):
        name = f"{database}.p"
        table = catalog.create_table(name, "id BIGINT, day STRING, v STRING", ["id", "day"], ["day"], {"bucket": "1"})
        before = catalog._entry(name)
        storage = value_of(before, 7)
        columns = [one for one in value_of(storage, 1) if value_of(one, 1) != "day"]
        keys = records([{1: text("day"), 2: text("string")}])
        # Hive refuses to make a plain table a partitioned one.
        catalog._metastore.drop_table(database, "p")
        catalog._metastore.create_table({**before, 7: record({**storage, 1: records(columns)}), 8: keys})
        table.add_column("n", "INT")
        found = entry(catalog, name)
        assert [column[0] for column in found["columns"]] == ["id", "v", "n"]
        assert [value_of(one, 1) for one in found["partitions"]] == ["day"]

    def test_what_the_metastore_missed_is_repaired(self, catalog, database, options, tmp_path):
        name = f"{database}.t"
        table = catalog.create_table(name, "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
        Table.open(table.path).add_column("n", "INT")  # by its path, past the catalog
        assert len(entry(catalog, name)["columns"]) == 2
        assert catalog.repair_table(name)
        assert entry(catalog, name)["columns"][2] == ("n", "int", None)
        assert not catalog.repair_table(name)
        Table.create(f"{tmp_path}/warehouse/{database}.db/found", "id BIGINT")
        with pytest.raises(TableExists, match="the metastore does not list"):
            catalog.create_table(f"{database}.found", "id BIGINT")
        assert catalog.repair_table(f"{database}.found")
        assert catalog.list_tables(database) == ["found", "t"]
        with pytest.raises(TableNotFound):
            catalog.repair_table(f"{database}.nothing")

    def test_a_failing_metastore_leaves_the_change_and_says_how_to_repair(self, catalog, database, monkeypatch):
        table = catalog.create_table(f"{database}.t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})

        def fail(*_):
            raise CatalogUnavailable("gone")

        with monkeypatch.context() as patched:
            patched.setattr(Metastore, "alter_table", fail)
            with pytest.raises(CatalogUnavailable, match=rf"schema 1 is written, and counts.*repair_table\('{database}.t'\)"):
                table.add_column("n", "INT")
        assert catalog.table(f"{database}.t").schema.names == ["id", "v", "n"]
        assert catalog.repair_table(f"{database}.t")
        with monkeypatch.context() as patched:
            patched.setattr(Metastore, "create_table", fail)
            with pytest.raises(CatalogUnavailable, match="perhaps not registered"):
                catalog.create_table(f"{database}.u", "id BIGINT")
            patched.setattr(Metastore, "alter_table", fail)
            with pytest.raises(CatalogUnavailable, match="perhaps not renamed"):
                catalog.rename_table(f"{database}.t", f"{database}.v")
        assert catalog.table(f"{database}.t").count() == 0
        assert catalog.create_table(f"{database}.u", "id BIGINT", if_not_exists=True).count() == 0

    def test_other_kinds_of_tables_are_left_alone(self, catalog, database, options):
        other = {
            1: text("plain"),
            2: text(database),
            7: record({1: records([{1: text("id"), 2: text("int")}]), 7: record({})}),
            12: text("MANAGED_TABLE"),
        }
        catalog._metastore.create_table(other)
        assert catalog.list_tables(database) == []
        assert not catalog.table_exists(f"{database}.plain")
        with pytest.raises(TableNotFound, match="in the metastore is not a Paimon table"):
            catalog.table(f"{database}.plain")
        with pytest.raises(TableExists, match="another kind of table"):
            catalog.create_table(f"{database}.plain", "id BIGINT", if_not_exists=True)
        with pytest.raises(TableNotFound):
            catalog.drop_table(f"{database}.plain")
        with pytest.raises(InvalidArgument, match="tables of other kinds"):
            catalog.drop_database(database)

    def test_an_external_table_keeps_its_files(self, database, options, tmp_path):
        catalog = Catalog(tmp_path / "warehouse", {**options, "table.type": "external"})
        catalog.create_database(database)
        table = catalog.create_table(f"{database}.t", "id BIGINT")
        table.write({"id": [1]})
        found = entry(catalog, f"{database}.t")
        assert (found["type"], found["parameters"]["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
        catalog.rename_table(f"{database}.t", f"{database}.u")
        assert catalog.table(f"{database}.u").path == table.path
        catalog.drop_table(f"{database}.u")
        assert Table.open(table.path).count() == 1

    def test_databases_have_properties_and_places(self, catalog, database, options, tmp_path):
        place = f"{tmp_path}/elsewhere"
        catalog.create_database(f"{database}_e", options={"location": place, "comment": "c", "owner": "me", "k": "v"})
        found = catalog.database_options(f"{database}_e")
        assert {key: found[key] for key in ("location", "comment", "owner", "k")} == {
            "location": f"file:{place}",
            "comment": "c",
            "owner": "me",
            "k": "v",
        }
        assert catalog.create_table(f"{database}_e.t", "id BIGINT").path == f"{place}/t"
        catalog.alter_database(f"{database}_e", {"k": None, "l": 2})
        found = catalog.database_options(f"{database}_e")
        assert (found.get("k"), found["l"], found["comment"], found["location"]) == (None, "2", "c", f"file:{place}")
        catalog.alter_database(f"{database}_e", {"comment": "d", "owner": None})
        found = catalog.database_options(f"{database}_e")
        assert (found["comment"], "owner" in found, found["l"]) == ("d", False, "2")
        with pytest.raises(InvalidArgument, match="location cannot be changed"):
            catalog.alter_database(f"{database}_e", {"location": "/x"})
        with pytest.raises(DatabaseExists):
            catalog.create_database(database)
        catalog.create_database(database, ignore_if_exists=True)

    def test_locations_may_be_properties(self, database, options, tmp_path):
        catalog = Catalog(tmp_path / "warehouse", {**options, "location-in-properties": "true"})
        catalog.create_database(database)
        table = catalog.create_table(f"{database}.t", "id BIGINT")
        assert entry(catalog, f"{database}.t")["parameters"]["paimon_location"] == table.path == f"{tmp_path}/warehouse/{database}.db/t"
        catalog.rename_table(f"{database}.t", f"{database}.u")
        assert catalog.table(f"{database}.u").path == f"{tmp_path}/warehouse/{database}.db/u"

    def test_commits_hold_the_lock_of_the_metastore(self, database, options, tmp_path):
        locking = {"lock.enabled": "true", "lock-acquire-timeout": "1 s", "lock-check-max-sleep": "100 ms"}
        catalog = Catalog(tmp_path / "warehouse", {**options, **locking})
        catalog.create_database(database)
        table = catalog.create_table(f"{database}.t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
        table.write({"id": [1], "v": ["a"]})
        with catalog._metastore.locked(database, "t", 5, 0.1):
            with pytest.raises(CommitConflict, match=rf"lock of table '{database}.t' in the metastore was not free in 1 s"):
                table.write({"id": [2], "v": ["b"]})
            assert table.count() == 1
        table.write({"id": [2], "v": ["b"]})
        assert table.count() == 2
        locks = value_of(catalog._metastore._call("show_locks", {1: record({})}), 1, [])
        assert [one for one in locks if value_of(one, 3) == "t" and value_of(one, 2) == database] == []

    def test_of_two_that_create_a_table_one_wins(self, catalog, database):
        outcomes = []

        def create():
            try:
                catalog.create_table(f"{database}.t", "id BIGINT")
                outcomes.append("created")
            except TableExists:
                outcomes.append("exists")

        threads = [threading.Thread(target=create) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["created", "exists", "exists", "exists"]
        assert catalog.table(f"{database}.t").count() == 0

    def test_a_pickled_catalog_is_the_same(self, catalog, database):
        catalog.create_table(f"{database}.t", "id BIGINT").write({"id": [1]})
        assert pickle.loads(pickle.dumps(catalog)).table(f"{database}.t").count() == 1


class TestWithoutAMetastore:
    def test_nobody_answers(self, tmp_path):
        catalog = Catalog.create({"metastore": "hive", "uri": "thrift://127.0.0.1:1", "warehouse": str(tmp_path)})
        assert isinstance(catalog, HiveCatalog)
        with pytest.raises(CatalogUnavailable, match=r"no Hive metastore answers \(127.0.0.1:1: .*; nothing was changed"):
            catalog.list_databases()

    def test_a_name_that_no_host_can_have_is_named(self, tmp_path):
        with pytest.raises(CatalogUnavailable, match=r"no Hive metastore answers \(a\.\.b:9083: "):
            Catalog(tmp_path, {"metastore": "hive", "uri": "thrift://a..b:9083"}).list_databases()

    def test_a_user_without_a_name_is_a_number(self, monkeypatch):
        def fail(_):
            raise KeyError("getpwuid(): uid not found: 12345")

        for name in ("HADOOP_USER_NAME", "LOGNAME", "USER", "LNAME", "USERNAME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("pwd.getpwuid", fail)
        assert user_name() == str(os.getuid())

    @pytest.mark.parametrize(
        "answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x80\x01\x00\x02\xff\xff\xff\xff", b"\x80\x01\x00\x02\0\0\0\1x\0\0\0\1\x63"]
    )
    def test_an_answer_that_is_none_leaves_the_outcome_unknown(self, answer, tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve():
                with suppress(OSError):  # the test is over
                    while True:
                        link, _ = server.accept()
                        with link:
                            link.recv(1 << 16)
                            link.sendall(answer)

            threading.Thread(target=serve, daemon=True).start()
            options = {"metastore": "hive", "uri": f"thrift://127.0.0.1:{server.getsockname()[1]}"}
            with pytest.raises(CatalogUnavailable, match=r"failed during get_all_databases .*unknown"):
                Catalog(tmp_path, options).list_databases()

    @pytest.mark.parametrize(
        ("given", "kind", "said"),
        [
            ({}, InvalidArgument, "needs option 'uri'"),
            ({"uri": " , "}, InvalidArgument, "needs option 'uri'"),
            ({"uri": "http://x:1"}, InvalidArgument, "must be 'thrift://host:port'"),
            ({"uri": "thrift://x"}, InvalidArgument, "must be 'thrift://host:port'"),
            ({"uri": "thrift://x:1", "hive.metastore.sasl.enabled": "true"}, UnsupportedOption, r"Kerberos \(SASL\) are not supported"),
            ({"uri": "thrift://x:1", "hive.metastore.use.SSL": "true"}, UnsupportedOption, "TLS are not supported"),
            ({"uri": "thrift://x:1", "metastore.client.class": "x.Y"}, UnsupportedOption, "classes of Java"),
            ({"uri": "thrift://x:1", "client-pool-size": "0"}, InvalidArgument, "from 1 up"),
            ({"uri": "thrift://x:1", "table.type": "odd"}, InvalidArgument, "'managed' or 'external'"),
            ({"uri": "thrift://x:1", "sync-all-properties": "perhaps"}, InvalidArgument, "'true' or 'false'"),
            ({"uri": "thrift://x:1", "lock.type": "jdbc"}, UnsupportedOption, "that of its metastore"),
            ({"uri": "thrift://x:1", "lock.enabled": "perhaps"}, InvalidArgument, "'true' or 'false'"),
            ({"uri": "thrift://x:1", "hive-conf-dir": "/nowhere"}, InvalidArgument, "there is no /nowhere/hive-site.xml"),
        ],
    )
    def test_options_are_checked(self, given, kind, said, tmp_path):
        with pytest.raises(kind, match=said):
            Catalog(tmp_path, {"metastore": "hive", **given})

    def test_no_time_is_no_time_but_for_answers_without_a_limit(self):
        assert LockOptions.of({"lock-acquire-timeout": "0 s", "lock-check-max-sleep": "0 s"})[0] == LockOptions(None, 0.0, 0.0)
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve():
                link, _ = server.accept()
                with link, link.makefile("rb") as source:
                    for _ in range(2):
                        decode_answer(source)
                        link.sendall(encode_call("f", {0: texts(["default"])}))

            threading.Thread(target=serve, daemon=True).start()
            given = {"uri": f"127.0.0.1:{server.getsockname()[1]}", "hive.metastore.client.socket.timeout": "0"}
            assert Metastore(HiveOptions.of(given)[0]).databases() == ["default"]

    def test_a_site_file_names_the_metastore(self, tmp_path, monkeypatch):
        site = (
            "<configuration><property><name>hive.metastore.uris</name><value>thrift://a:1,thrift://b:2</value></property></configuration>"
        )
        (tmp_path / "hive-site.xml").write_text(site)
        monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
        assert HiveOptions.of({})[0].addresses == (("a", 1), ("b", 2))
        assert HiveOptions.of({"uri": "thrift://c:3"})[0].addresses == (("c", 3),)
        (tmp_path / "hive-site.xml").write_text("<configuration>")
        with pytest.raises(InvalidArgument, match="cannot be read"):
            HiveOptions.of({"hive-conf-dir": str(tmp_path)})

    @pytest.mark.parametrize(
        ("written", "hive"),
        [
            ("BOOLEAN", "boolean"),
            ("TINYINT", "tinyint"),
            ("SMALLINT", "smallint"),
            ("BIGINT NOT NULL", "bigint"),
            ("FLOAT", "float"),
            ("DECIMAL(38, 4)", "decimal(38,4)"),
            ("CHAR(255)", "char(255)"),
            ("CHAR(256)", "string"),
            ("VARCHAR(65535)", "varchar(65535)"),
            ("VARCHAR(65536)", "string"),
            ("STRING", "string"),
            ("BINARY(3)", "binary"),
            ("BYTES", "binary"),
            ("DATE", "date"),
            ("TIME(3)", "string"),
            ("TIMESTAMP(6)", "timestamp"),
            ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "timestamp with local time zone"),
            ("VARIANT", "struct<value:binary,metadata:binary>"),
            ({"type": "ARRAY", "element": "INT"}, "array<int>"),
            ({"type": "MULTISET", "element": "STRING"}, "map<string,int>"),
            (
                {
                    "type": "ROW",
                    "fields": [{"id": 1, "name": "a", "type": "INT"}, {"id": 2, "name": "b", "type": {"type": "ARRAY", "element": "DATE"}}],
                },
                "struct<a:int,b:array<date>>",
            ),
        ],
    )
    def test_types_have_hive_s_names(self, written, hive):
        assert hive_type(DataType.from_json(written)) == hive

    def test_messages_come_back_as_they_went(self):
        whole = {
            1: text("é\udcff"),
            2: (Wire.BOOL, True),
            3: (Wire.BYTE, -1),
            4: (Wire.DOUBLE, 1.5),
            5: (Wire.I16, -2),
            6: long(1 << 40),
            7: (Wire.SET, Items(Wire.I32, [1, 2])),
            8: (Wire.MAP, Pairs(Wire.STRING, Wire.LIST, {"k": Items(Wire.STRUCT, [{1: text("x")}])})),
        }
        assert decode_answer(io.BytesIO(encode_call("f", whole))) == (1, "f", whole)
        deep = {1: text("x")}
        for _ in range(100):
            deep = {1: record(deep)}
        with pytest.raises(BadMessage, match="nested too deeply"):
            decode_answer(io.BytesIO(encode_call("f", deep)))

    def test_commits_lock_on_object_stores_unless_told_otherwise(self, tmp_path):
        usual = Catalog(tmp_path, {"metastore": "hive", "uri": "x:1"})
        paths = ("s3://b/w/t", "hdfs://nn:1/w/t", "viewfs://v/t", "/w/t")
        assert [usual._locks(path) for path in paths] == [True, False, False, False]
        for said in (True, False):
            catalog = Catalog(tmp_path, {"metastore": "hive", "uri": "x:1", "lock.enabled": said})
            assert {catalog._locks(path) for path in paths} == {said}

    def test_only_snapshots_and_schemas_are_created_under_the_lock(self, tmp_path):
        locked = []

        class Recording(Metastore):
            @contextmanager
            def locked(self, *arguments):
                locked.append(arguments)
                yield

        held = LockedFileIO(LocalFileIO(), Recording(HiveOptions.of({"uri": "x:1"})[0]), ("d", "t"), LockOptions())
        for name in ("snapshot/snapshot-1", "schema/schema-0", "tag/tag-a", "snapshot/LATEST"):
            assert held.create_exclusive(f"{tmp_path}/{name}", b"x")
        assert locked == [("d", "t", 480.0, 8.0)] * 2
        assert held.identity(f"{tmp_path}/tag/tag-a") == LocalFileIO().identity(f"{tmp_path}/tag/tag-a")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_views_are_virtual_views_of_the_metastore(catalog, database):
    table = catalog.create_table(f"{database}.t", "id BIGINT")
    columns = "id BIGINT COMMENT 'the key', d DECIMAL(10, 2), b BYTES, at TIMESTAMP(3), z TIMESTAMP(6) WITH LOCAL TIME ZONE, n ROW<a INT, b ARRAY<STRING>>"
    view = catalog.create_view(f"{database}.v", f"SELECT * FROM {database}.t", columns, comment="ours", options={"a": "b"})
    found = catalog._metastore.table(database, "v")
    assert (value_of(found, 12), value_of(found, 10), value_of(found, 11)) == ("VIRTUAL_VIEW", view.query, view.query)
    assert [value_of(one, 2) for one in value_of(value_of(found, 7), 1)] == [
        "bigint",
        "decimal(10,2)",
        "binary",
        "timestamp",
        "timestamp with local time zone",
        "struct<a:int,b:array<string>>",
    ]
    assert [(field.name, str(field.type)) for field in view.fields] == [
        ("id", "BIGINT"),
        ("d", "DECIMAL(10, 2)"),
        ("b", "BYTES"),
        ("at", "TIMESTAMP(3)"),
        ("z", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("n", "ROW<a INT, b ARRAY<STRING>>"),
    ]
    assert (view.fields[0].description, view.comment, view.options["a"], view.dialects) == ("the key", "ours", "b", {})
    assert (catalog.list_views(database), catalog.list_tables(database)) == (["v"], ["t"])
    assert catalog.view(f"{database.upper()}.V") == view, "the metastore ignores case, and the view has one name"
    for taken in ("v", "t"):
        with pytest.raises(TableExists):
            catalog.create_view(f"{database}.{taken}", "SELECT 1", "id INT")
    catalog.alter_view(f"{database}.v", comment="theirs", options={"a": None, "c": "d"})
    assert (catalog.view(f"{database}.v").comment, catalog.view(f"{database}.v").options.get("a")) == ("theirs", None)
    for call in (
        lambda: catalog.alter_view(f"{database}.v", dialects={"spark": "SELECT 1"}),
        lambda: catalog.create_view(f"{database}.x", "SELECT 1", "id INT", dialects={"flink": "SELECT 2"}),
    ):
        with pytest.raises(UnsupportedOption, match="one text for all engines"):
            call()
    catalog.rename_view(f"{database}.v", f"{database}.w")
    with pytest.raises(TableExists):
        catalog.rename_view(f"{database}.w", f"{database}.t")
    with pytest.raises(InvalidArgument, match="has tables: t"):
        catalog.drop_database(database)
    for gone in (catalog.view, catalog.drop_view, lambda name: catalog.rename_view(name, f"{database}.y")):
        with pytest.raises(TableNotFound):
            gone(f"{database}.v")
        with pytest.raises(TableNotFound, match="not a view"):
            gone(f"{database}.t")
    catalog.drop_table(f"{database}.t")
    with pytest.raises(InvalidArgument, match="has views: w"):
        catalog.drop_database(database)
    catalog.drop_view(f"{database}.w")
    assert not Path(table.path).exists()
    catalog.drop_database(database)
    with pytest.raises(DatabaseNotFound):
        catalog.list_views(database)


@pytest.mark.parametrize(
    "ddl", ["n ROW<timestamp TIMESTAMP(3), binary INT, d DECIMAL(4, 2), `b c` BYTES>", "`a``b` TIMESTAMP(3), `timestamp` BYTES"]
)
def test_columns_of_views_may_be_named_as_types_or_need_quotes(ddl):
    fields = build_schema(ddl).fields
    found = fields_of_view(view_entry(("d", "v"), fields, "SELECT 1", view_parameters(None, {})))
    assert [(field.name, str(field.type)) for field in found] == [(field.name, str(field.type)) for field in fields]
