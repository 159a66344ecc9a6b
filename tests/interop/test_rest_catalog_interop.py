"""Our client of REST catalogs with Paimon's own server, beside Paimon's own Python client; and the server of our tests beside Paimon's."""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from benchmarks.java_project import JavaUnavailable
from manifest.io.catalog_errors import NotAuthorized, NotPermitted
from manifest.io.errors import CatalogRefused, SnapshotNotFound, TableExists, TableNotFound
from paimon_base.errors import InvalidArgument, UnknownColumn
from pyspark_paimon import Catalog, DatabaseExists, DatabaseNotFound
from pyspark_paimon.plugins.catalogs.rest.messages import Identifier
from pyspark_paimon.request.state import Snapshots
from pyspark_paimon.results.fsck_problem import ProblemKind
from tests.catalogs.server import PREFIX, CatalogServer
from tests.catalogs.server import TOKEN as OUR_TOKEN
from tests.interop.peers import PYPAIMON, PeerUnavailable, environment
from tests.interop.pypaimon_process import __file__ as beside
from tests.interop.rest_server import TOKEN, RestServer

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def java(tmp_path_factory) -> Iterator[RestServer]:
    try:
        server = RestServer(tmp_path_factory.mktemp("warehouse")).__enter__()
    except JavaUnavailable as missing:
        pytest.skip(str(missing))
    yield server
    server.__exit__()


@pytest.fixture
def catalog(java, request):
    catalog = Catalog.create(java.options())
    catalog.create_database(database(request), ignore_if_exists=True)
    return catalog


@pytest.fixture
def name(request):
    return f"{database(request)}.orders"


def database(request) -> str:
    return request.node.originalname.removeprefix("test_")[:40]


def orders(catalog, name, **options):
    return catalog.create_table(
        name,
        "id BIGINT, total INT, day STRING",
        primary_keys=["id", "day"],
        partition_keys=["day"],
        options={"bucket": "1", "commit.min-retry-wait": "1 ms", **options},
    )


def rows(*pairs, day="a"):
    ids, totals = zip(*pairs, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "total": pa.array(totals, pa.int32()), "day": [day] * len(ids)})


def found(table):
    return sorted((row["id"], row["total"]) for row in table.scan(columns=["id", "total"]).to_arrow().to_pylist())


def test_databases_and_tables(java, catalog, name) -> None:
    owner = name.partition(".")[0]
    with pytest.raises(DatabaseExists):
        catalog.create_database(owner)
    catalog.alter_database(owner, {"a": "1", "b": "2"})
    catalog.alter_database(owner, {"a": None})
    assert catalog.database_options(owner) == {"b": "2"}
    for table in ("c", "a", "b"):
        orders(catalog, f"{owner}.{table}")
    with pytest.raises(TableExists):
        orders(catalog, f"{owner}.a")
    assert catalog.list_tables(owner) == ["a", "b", "c"]
    catalog.table(f"{owner}.a").write(rows((1, 2)))
    catalog.rename_table(f"{owner}.a", f"{owner}.z")
    with pytest.raises(TableExists):
        catalog.rename_table(f"{owner}.b", f"{owner}.c")
    with pytest.raises(TableNotFound):
        catalog.table(f"{owner}.a")
    catalog.drop_table(f"{owner}.z")
    with pytest.raises(TableNotFound):
        catalog.drop_table(f"{owner}.z")
    with pytest.raises(DatabaseNotFound):
        catalog.list_tables("nowhere")
    assert owner in catalog.list_databases()


def test_writes_changes_tags_and_branches(java, catalog, name) -> None:
    table = orders(catalog, name)
    table.write(rows((1, 1), (2, 2)))
    table.write(rows((2, 20), (3, 3)))
    table.compact(full=True)
    table.add_column("note", "STRING", after="id", comment="free", default="none").rename_column("note", "remark")
    table.change_type("total", "BIGINT").set_comment("all").move_column("total", first=True).alter_options({"target-file-size": "64 mb"})
    again = catalog.table(name)
    assert [(f.name, str(f.type), f.description, f.default_value) for f in again.table_schema.fields][:3] == [
        ("total", "BIGINT", None, None),
        ("id", "BIGINT NOT NULL", None, None),
        ("remark", "STRING", "free", "none"),
    ]
    assert (again.table_schema.comment, again.options["target-file-size"]) == ("all", "64 mb")
    assert found(again) == [(1, 1), (2, 20), (3, 3)]
    with pytest.raises(UnknownColumn):
        table.drop_column("nope")
    table.create_tag("kept", snapshot=1)
    with pytest.raises(InvalidArgument):
        table.create_tag("kept", snapshot=1)
    table.create_tag("newest")
    table.create_branch("trial", from_tag="newest")  # that server takes the table's newest snapshot for the branch's, whatever the tag
    branch = catalog.table(f"{name}$branch_trial")
    branch.write(pa.table({"id": [9], "total": [9], "day": ["a"]}))
    assert (found(branch), found(catalog.table(name))) == ([(1, 1), (2, 20), (3, 3), (9, 9)], [(1, 1), (2, 20), (3, 3)])
    # that server notes the branch's newest snapshot in the table's own hint
    assert {problem.kind for problem in table.fsck("deep").problems} == {ProblemKind.HINT}
    table.rollback_to(snapshot=1)
    assert found(catalog.table(name)) == [(1, 1), (2, 2)]
    with pytest.raises(SnapshotNotFound):
        table.rollback_to(snapshot=77)
    table.delete_branch("trial")
    table.delete_tag("kept")
    table.write(pa.table({"id": [4], "total": [4], "day": ["a"]}))
    assert found(catalog.table(name)) == [(1, 1), (2, 2), (4, 4)]
    assert table.fsck("deep").problems == ()


def test_views_are_the_same_to_both_clients(java, catalog, name) -> None:
    owner = name.partition(".")[0]
    view = catalog.create_view(f"{owner}.v", "SELECT id FROM t", "id BIGINT NOT NULL, day STRING", comment="ours", options={"a": "b"})
    columns, *texts, options = java.ask("view", view.name).split("|")  # that client puts who made it and when into the options
    assert (columns, texts) == ("ROW<`id` BIGINT NOT NULL, `day` STRING> NOT NULL", ["SELECT id FROM t", "SELECT id FROM t", "ours"])
    assert "a=b" in options
    with pytest.raises(TableExists):
        catalog.create_view(view.name, "SELECT 1", "id INT")
    catalog.alter_view(view.name, dialects={"spark": "SELECT 2", "flink": "SELECT 3"}, comment="", options={"a": None, "c": "d"})
    _, *texts, options = java.ask("view", view.name).split("|")
    assert (texts, "c=d" in options, "a=b" in options) == (["SELECT id FROM t", "SELECT 2", ""], True, False)
    catalog.alter_view(view.name, dialects={"flink": None})
    assert catalog.view(view.name).dialects == {"spark": "SELECT 2"}
    java.say("make", f"{owner}.theirs", "SELECT id FROM u")
    theirs = catalog.view(f"{owner}.theirs")
    assert (theirs.text(), theirs.query, theirs.comment, str(theirs.fields[0].type)) == (
        "SELECT id FROM u",
        "SELECT 0 AS id",
        "by Java",
        "BIGINT",
    )
    catalog.rename_view(view.name, f"{owner}.w")
    assert catalog.list_views(owner) == ["theirs", "w"]
    assert java.ask("views", owner) in {"[theirs, w]", "[w, theirs]"}
    catalog.drop_view(f"{owner}.w")
    for gone in (catalog.view, catalog.drop_view):
        with pytest.raises(TableNotFound):
            gone(f"{owner}.w")


def test_a_commit_whose_answer_is_an_error_commits_once(java, catalog, name) -> None:
    table = orders(catalog, name)
    for turn in range(3):
        java.say("lose")
        assert table.write(rows((turn, turn))).snapshot_id == turn + 1
    assert [snapshot.id for snapshot in table._engine.ask(Snapshots())] == [1, 2, 3]
    assert found(table) == [(0, 0), (1, 1), (2, 2)]


def test_a_table_made_anew_takes_no_commit_of_the_old_one(java, catalog, name) -> None:
    old = orders(catalog, name)
    catalog.drop_table(name)
    orders(catalog, name)
    with pytest.raises(CatalogRefused, match="nothing was committed"):
        old.write(rows((1, 1)))
    assert found(catalog.table(name)) == []


def test_racing_writers_lose_no_row(java, catalog, name) -> None:
    orders(catalog, name, **{"write-only": "true", "commit.max-retries": "200"})

    def write(worker) -> None:
        table = Catalog.create(java.options()).table(name)
        for turn in range(4):
            table.write(rows((worker * 10 + turn, turn)))

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = catalog.table(name)
    assert [row[0] for row in found(table)] == [worker * 10 + turn for worker in range(3) for turn in range(4)]
    assert len(table._engine.ask(Snapshots())) == 12
    assert table.fsck("deep").problems == ()


def test_tokens_and_permissions(java, catalog, name) -> None:
    with pytest.raises(NotAuthorized):
        Catalog.create(java.options(token="another"))
    table = orders(catalog, name)
    java.say("lend", name, "fs.oss.accessKeyId", "lent")
    lent = table._engine._api.token(Identifier(database=name.partition(".")[0], object="orders"))
    assert lent.token == {"fs.oss.accessKeyId": "lent"}
    assert 6_000_000 < lent.expires_at_millis - time.time() * 1000 < 7_300_000
    java.say("forbid", name)
    for refused in (lambda: catalog.table(name), lambda: table.write(rows((1, 1)))):
        with pytest.raises(NotPermitted):
            refused()


def test_pypaimon_reads_and_writes_the_same_tables_through_the_server(java, catalog, name) -> None:
    try:
        python = environment(PYPAIMON)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    options = java.options()

    def peer(**job) -> Any:
        program = beside.replace("pypaimon_process", "pypaimon_rest")
        done = subprocess.run(
            [python, program, json.dumps(options), json.dumps(job)], capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return [tuple(row) for row in json.loads(done.stdout.strip().splitlines()[-1]) or ()]

    ours = catalog.create_table(name, "id BIGINT, total INT", primary_keys=["id"], options={"bucket": "1"})
    ours.write(pa.table({"id": [1, 2], "total": [1, 2]}))
    assert peer(do="read", table=name) == [(1, 1), (2, 2)]
    peer(do="write", table=name, rows=[[2, 20], [3, 3]])
    assert found(ours) == [(1, 1), (2, 20), (3, 3)]
    theirs = f"{name.partition('.')[0]}.theirs"
    peer(do="make", table=theirs)
    peer(do="write", table=theirs, rows=[[5, 5]])
    table = catalog.table(theirs)
    table.write(pa.table({"id": pa.array([6]), "total": pa.array([6], pa.int32())}))
    table.compact(full=True)
    assert found(table) == peer(do="read", table=theirs) == [(5, 5), (6, 6)]
    assert (ours.fsck("deep").problems, table.fsck("deep").problems) == ((), ())


COLUMNS = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}], "partitionKeys": [], "primaryKeys": ["id"]}
NEW = {"identifier": {"database": "d", "object": "t"}, "schema": {**COLUMNS, "options": {"bucket": "1"}, "comment": "c"}}
REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/databases", None),
    ("GET", "/databases/nowhere", None),
    ("GET", "/databases/nowhere/tables", None),
    ("POST", "/databases", {"name": "d", "options": {"k": "v"}}),
    ("POST", "/databases", {"name": "d", "options": {}}),
    ("GET", "/databases/d", None),
    ("POST", "/databases/d", {"removals": ["k"], "updates": {"l": "w"}}),
    ("GET", "/databases/d/tables", None),
    ("POST", "/databases/d/tables", NEW),
    ("POST", "/databases/d/tables", NEW),
    ("GET", "/databases/d/tables", None),
    ("GET", "/databases/d/tables/t", None),
    ("GET", "/databases/d/tables/nothing", None),
    ("GET", "/databases/d/tables/t/snapshot", None),
    ("GET", "/databases/d/tables/nothing/snapshot", None),
    (
        "POST",
        "/databases/d/tables/t",
        {"changes": [{"action": "addColumn", "fieldNames": ["x"], "dataType": "INT", "comment": None, "move": None}]},
    ),
    (
        "POST",
        "/databases/d/tables/t",
        {"changes": [{"action": "addColumn", "fieldNames": ["x"], "dataType": "INT", "comment": None, "move": None}]},
    ),
    ("POST", "/databases/d/tables/t", {"changes": [{"action": "dropColumn", "fieldNames": ["y"]}]}),
    ("POST", "/databases/d/tables/nothing/commit", {"tableId": "x"}),
    ("POST", "/databases/d/tables/t/branches", {"branch": "b"}),
    ("POST", "/databases/d/tables/t/branches", {"branch": "b"}),
    ("GET", "/databases/d/tables/t%24branch_b", None),
    ("DELETE", "/databases/d/tables/t/branches/b", None),
    ("GET", "/databases/d/tables/t%24branch_b", None),
    ("POST", "/tables/rename", {"source": {"database": "d", "object": "t"}, "destination": {"database": "d", "object": "u"}}),
    ("POST", "/tables/rename", {"source": {"database": "d", "object": "t"}, "destination": {"database": "d", "object": "u"}}),
    ("DELETE", "/databases/d/tables/u", None),
    ("DELETE", "/databases/d/tables/u", None),
    ("DELETE", "/databases/d", None),
]


def test_the_server_of_our_tests_answers_as_paimons(java, tmp_path) -> None:
    with CatalogServer(tmp_path / "ours") as ours, RestServer(tmp_path / "theirs") as theirs:
        for request in REQUESTS:
            theirs_said = shape(*asked(f"{theirs.uri}v1/paimon", TOKEN, request))
            ours_said = shape(*asked(f"http://127.0.0.1:{ours.port}/v1/{PREFIX.replace(' ', '+')}", OUR_TOKEN, request))
            assert ours_said == theirs_said, request


def asked(base: str, token: str, request: tuple[str, str, Any]) -> tuple[int, Any]:
    (method, path, body), server = request, urlsplit(base)
    connection = http.client.HTTPConnection(server.netloc, timeout=60)
    connection.request(method, server.path + path, None if body is None else json.dumps(body), {"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, json.loads(content) if content else None


AUDIT = {"owner", "createdAt", "createdBy", "updatedAt", "updatedBy"}


def shape(status: int, said: Any) -> Any:
    """What a client looks at: the status, of a refusal its kind, of an answer its members that are not null."""
    if status >= 400:
        return status, (said or {}).get("resourceType"), (said or {}).get("code")
    return status, members(said)


def members(said: Any) -> Any:
    if isinstance(said, dict):
        kept = {
            name: members(value) for name, value in said.items() if value is not None and name not in {*AUDIT, "id", "path", "location"}
        }
        return {name: value for name, value in kept.items() if value not in ([], {})}
    return said
