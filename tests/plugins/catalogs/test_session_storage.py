"""Options of stores and catalogs as a session's file: what is sent, which of them count for a path, and what a server refuses."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from manifest.io.errors import PathNotAllowed, TableNotFound
from manifest.storage.allowed_roots import ROOTS
from manifest.storage.resolve import file_io_for
from manifest.storage.storage_options import StorageOptions
from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon import Catalog, CatalogUnavailable, NotAuthorized, Table
from pyspark_paimon.plugins.catalogs.rest.location import TableLocation
from pyspark_paimon.plugins.catalogs.rest.options import RestOptions
from pyspark_paimon.spark.wire.errors import describe_error, typed_error
from pyspark_paimon.spark.wire.session_storage import CLIENT_STORAGE, send_catalog, send_storage_options
from tests.catalogs.server import TOKEN, CatalogServer, lent

KEYS = {"s3.endpoint": "http://127.0.0.1:9", "s3.access-key": "AKIA", "s3.secret-key": "hidden"}


class Session:
    """Keeps the files that it is given, as a server does."""

    client = object()

    def __init__(self, folder):
        self.folder = folder

    def addArtifacts(self, path, *, file):  # Spark's name
        assert file
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
        shutil.copy(path, self.folder)


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """This process as a worker of the server, whose session's files are in ``tmp_path``."""
    files = SimpleNamespace(_is_running_on_worker=True, getRootDirectory=lambda: str(tmp_path))
    monkeypatch.setitem(sys.modules, "pyspark.core.files", SimpleNamespace(SparkFiles=files))
    return files


def options_for(path):
    return file_io_for(path)[0].options


def test_what_was_given_for_the_longest_path_counts_and_of_that_the_newest(session, server):
    send_storage_options(session, KEYS)
    send_storage_options(session, KEYS | {"s3.access-key": "OLD"}, "s3://b/w/t/")
    send_storage_options(session, KEYS | {"s3.access-key": "NEW"}, "s3://b/w/t$branch_dev")
    named = {
        path: {name: value for _, name, value in options_for(path).values}["access_key_id"]
        for path in ("s3://b/w/t", "s3://b/w/t$branch_x", "s3://b/w/t/branch/branch-x", "s3://b/w/t2", "s3://other/t")
    }
    assert list(named.values()) == ["NEW", "NEW", "NEW", "AKIA", "AKIA"]
    own = {"s3.region": "eu-1"}
    assert file_io_for("s3://b/w/t", storage_options=own)[0].options == StorageOptions.of(own), "what a caller says counts first"


def test_nothing_is_sent_twice_nor_for_local_tables(session, tmp_path):
    for _ in range(3):
        send_storage_options(session, KEYS, "s3://b/w/t")
        send_storage_options(session, KEYS, "/warehouse/t")
        send_storage_options(session, KEYS, "file:///warehouse/t")
    assert len(list(tmp_path.iterdir())) == 1


def test_only_a_server_s_processes_look_for_files(session, server):
    send_storage_options(session, KEYS)
    server._is_running_on_worker = False
    assert options_for("s3://b/w/t") == StorageOptions()


def test_a_server_may_take_none(session, server, monkeypatch):
    monkeypatch.setenv(CLIENT_STORAGE, "refused")
    assert options_for("s3://b/w/t") == StorageOptions(), "its own count where nobody gives any"
    send_storage_options(session, KEYS)
    with pytest.raises(UnsupportedOption, match="refuses credentials of clients"):
        options_for("s3://b/w/t")
    monkeypatch.setenv(CLIENT_STORAGE, "no")
    with pytest.raises(InvalidArgument, match=CLIENT_STORAGE):
        options_for("s3://b/w/t")


@pytest.mark.parametrize(
    "lent",
    [
        {"s3.endpoint": "http://evil.example.com"},
        {"s3.endpoint": "http://evil.example.com", "azure.account-key": "k"},
        {"azure.endpoint": "http://evil.example.com"},
        {"s3.role-arn": "arn:aws:iam::1:role/r"},
        {"s3.web-identity-token-file": "/etc/shadow"},
        {"gs.service-account": "/etc/shadow"},
        {"gs.application-credentials": "/etc/shadow"},
    ],
)
def test_nothing_of_the_server_s_own_is_lent(session, server, tmp_path, monkeypatch, lent):
    with pytest.raises(InvalidArgument, match="storage_options"):
        send_storage_options(session, lent)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("pyspark_paimon.spark.wire.session_storage.refuse_server_credentials", lambda options: None)
    send_storage_options(session, lent)  # as a client of its own making would
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyspark.core.files", SimpleNamespace(SparkFiles=server))
    with pytest.raises(InvalidArgument, match="storage_options"):
        options_for("s3://b/w/t")


def test_a_session_without_such_files_is_refused():
    with pytest.raises(InvalidArgument, match="Spark Connect session"):
        send_storage_options(SimpleNamespace(), KEYS)


@pytest.fixture
def rest(tmp_path_factory, monkeypatch):
    monkeypatch.setattr("pyspark_paimon.plugins.catalogs.rest.client._FIRST_WAIT", 0.001)
    with CatalogServer(tmp_path_factory.mktemp("rest") / "warehouse") as running:
        yield running


@pytest.fixture
def catalog(rest):
    found = Catalog.create(rest.options())
    found.create_table("t", "id BIGINT", primary_keys=["id"], options={"bucket": "1"})
    return found


def location_of(catalog, session, name="t"):
    return catalog._open_engine(name).location(session)


def test_a_server_s_process_opens_a_catalog_s_table_by_its_location(catalog, rest, session, server, tmp_path):
    location = location_of(catalog, session)
    assert location.endswith("/default.db/t")
    assert location_of(catalog, session) == location
    assert len(list(tmp_path.iterdir())) == 1, "sent once"
    table = Table.open(location)
    table.write({"id": [1, 2]})
    table.create_tag("one")
    assert (catalog.table("t").count(), catalog.table("t$tags").count()) == (2, 1)
    assert Table.open(f"{location}$snapshots").count() == 1
    named = TableLocation.parse(location)
    assert Table.open(TableLocation(named.catalog, named.table).text).count() == 2, "an id is not needed"
    with pytest.raises(TableNotFound):
        Table.open(f"{location}x")
    for wrong in ("rest://c", "rest://c/t", "rest://c/a/b/c.db/t"):
        with pytest.raises(InvalidArgument, match="rest://"):
            Table.open(wrong)


def test_the_newest_token_of_a_catalog_counts(catalog, rest, session, server):
    location = location_of(catalog, session)
    key = TableLocation.parse(location).catalog
    send_catalog(session, key, rest.options(token="expired"))
    with pytest.raises(NotAuthorized) as refused:
        Table.open(location)
    assert "expired" not in str(refused.value).replace("missing or expired", "")
    send_catalog(session, key, rest.options())
    assert Table.open(location).count() == 0


def test_a_session_without_the_catalog_is_told_how_to_give_it(catalog, session, server):
    location = location_of(catalog, session)
    server._is_running_on_worker = False
    with pytest.raises(InvalidArgument, match="no options of that catalog"):
        Table.open(location)


def test_a_server_may_take_no_catalogs(catalog, session, server, monkeypatch):
    location = location_of(catalog, session)
    monkeypatch.setenv(CLIENT_STORAGE, "refused")
    with pytest.raises(UnsupportedOption, match="refuses credentials of clients"):
        Table.open(location)


def test_a_classic_session_gets_no_token(catalog):
    with pytest.raises(InvalidArgument, match="Spark Connect session"):
        location_of(catalog, SimpleNamespace())


def answered(rest, path):
    """Make the catalog's server answer with a table at ``path``."""
    told = {"id": rest.tables["default", "t"].id, "path": path, "schema": {"fields": [], "options": {}}}
    rest.answers = lambda method, asked: (200, told) if asked.endswith("/tables/t") else None


def test_allowed_directories_limit_the_paths_that_a_catalog_names(catalog, rest, session, server, monkeypatch):
    location, path = location_of(catalog, session), rest.tables["default", "t"].path
    answered(rest, path)
    monkeypatch.setenv(ROOTS, str(session.folder))
    with pytest.raises(PathNotAllowed):
        Table.open(location)
    monkeypatch.setenv(ROOTS, rest.folder)
    assert Table.open(location).table_schema.names == ("id",)


@pytest.mark.parametrize("loader", [{"dlf.token-path": "/etc/passwd"}, {"dlf.token-loader": "ecs"}])
def test_keys_of_one_machine_are_not_sent(session, server, tmp_path, loader):
    options = {"uri": "http://127.0.0.1:9", "token.provider": "dlf", "dlf.region": "eu", **loader}
    with pytest.raises(InvalidArgument, match=r"dlf\.access-key-id"):
        RestOptions.of(options).for_session()
    forged = tmp_path / "paimon-session-catalog-0-x.json"  # as a client of its own making would
    forged.write_text(json.dumps(["c", options]))
    with pytest.raises(InvalidArgument, match=r"dlf\.access-key-id"):
        Table.open("rest://c/default.db/t")


def test_a_catalog_that_lends_only_an_endpoint_does_not_get_the_server_s_own_keys(catalog, rest, session, server):
    rest.defaults["data-token.enabled"] = "true"
    rest.lends = lambda table: lent({"s3.endpoint": "http://evil.example.com"}, 9999)
    location = location_of(catalog, session)
    answered(rest, "s3://bucket/t")
    with pytest.raises(InvalidArgument, match="endpoint without credentials"):
        Table.open(location).count()


@pytest.mark.parametrize("error", [NotAuthorized("no"), CatalogUnavailable("the server did not answer")])
def test_errors_of_a_catalog_reach_the_client_as_their_class(error):
    found = typed_error(describe_error(error))
    assert (type(found), str(found)) == (type(error), str(error))


def test_nothing_that_is_shown_has_the_token(catalog, session):
    location = location_of(catalog, session)
    assert TOKEN not in location
    assert TOKEN not in repr(TableLocation.parse(location))
