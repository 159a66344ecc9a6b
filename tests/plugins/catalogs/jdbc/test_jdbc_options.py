"""Options of a JDBC catalog: addresses of the databases, and what is never shown."""

from __future__ import annotations

import pickle

import pytest

from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon.plugins.catalogs.jdbc.options import JdbcOptions
from pyspark_paimon.plugins.catalogs.jdbc.rows import CatalogRows


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"uri": "jdbc:sqlite:/path/db.sqlite", "jdbc.user": "u", "jdbc.password": "p"}, "sqlite:////path/db.sqlite"),
        ({"uri": "jdbc:sqlite:relative.db"}, "sqlite:///relative.db"),
        ({"uri": "jdbc:postgresql://db:5433/lake", "jdbc.user": "me"}, "postgresql+psycopg://me@db:5433/lake"),
        (
            {"uri": "jdbc:postgresql://db/lake?user=me&password=a%40b&sslmode=require", "jdbc.user": "other"},
            "postgresql+psycopg://me:a%40b@db/lake?sslmode=require",
        ),
        (
            {"uri": "jdbc:mysql://[::1]:3306/my%20lake", "jdbc.user": "u", "jdbc.password": "s/3"},
            "mysql+pymysql://u:s%2F3@[::1]:3306/my lake",
        ),
    ],
)
def test_addresses_become_those_of_sqlalchemy(given, url, monkeypatch) -> None:
    sa = pytest.importorskip("sqlalchemy")
    seen = []
    monkeypatch.setattr(sa, "create_engine", lambda url, **_: seen.append(url))
    monkeypatch.setattr(CatalogRows, "_create_missing", lambda *_: None)
    options, rest = JdbcOptions.of(given)
    CatalogRows(options)
    assert seen[0].render_as_string(hide_password=False) == url
    assert rest == {}


@pytest.mark.parametrize(
    ("uri", "module", "install"),
    [("jdbc:postgresql://db/lake", "psycopg", r"psycopg\[binary\]"), ("jdbc:mysql://db/lake", "pymysql", "pip install pymysql")],
)
def test_a_missing_driver_is_named(uri, module, install, monkeypatch) -> None:
    pytest.importorskip("sqlalchemy")
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(UnsupportedOption, match=rf"option 'uri': this database needs {module}; run: .*{install}"):
        CatalogRows(JdbcOptions.of({"uri": uri})[0])


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({"uri": ""}, InvalidArgument, "a JDBC catalog needs option 'uri'"),
        ({"uri": "sqlite:///x"}, InvalidArgument, "jdbc:sqlite:/path"),
        ({"uri": "jdbc:sqlite::memory:"}, InvalidArgument, "of a file"),
        ({"uri": "jdbc:sqlite:/x?cache=shared"}, InvalidArgument, "without parameters"),
        ({"uri": "jdbc:oracle:thin:@s3cr3t"}, UnsupportedOption, "databases of kind 'oracle'"),
        ({"uri": "jdbc:mysql://h1:1,h2:2/s3cr3t"}, InvalidArgument, "with one host"),
        ({"uri": "jdbc:mysql://u:s3cr3t@h/d"}, InvalidArgument, "'jdbc.password'"),
        ({"uri": "jdbc:postgresql:s3cr3t"}, InvalidArgument, "jdbc:postgresql://host:port/database"),
        ({"uri": "jdbc:mysql://h/d?useSSL=s3cr3t"}, UnsupportedOption, "option 'jdbc.useSSL': this is a property of the Java driver"),
        ({"jdbc.busy_timeout": "s3cr3t"}, UnsupportedOption, "option 'jdbc.busy_timeout'"),
        ({"catalog-key": "k" * 256}, InvalidArgument, "1 to 255 characters"),
        ({"client-pool-size": "none"}, InvalidArgument, "option 'client-pool-size'"),
        ({"sync-all-properties": "maybe"}, InvalidArgument, "option 'sync-all-properties'"),
    ],
)
def test_other_values_are_refused_without_secrets(more, kind, words) -> None:
    with pytest.raises(kind, match=words) as error:
        JdbcOptions.of({"uri": "jdbc:sqlite:/x", **more})
    assert "s3cr3t" not in str(error.value)


def test_the_password_is_not_shown_and_travels() -> None:
    given = {
        "uri": "jdbc:postgresql://db/lake?sslkey=hidden",
        "jdbc.password": "hidden",
        "catalog-key": "k",
        "client-pool-size": 2,
        "s3.region": "eu",
    }
    options, rest = JdbcOptions.of(given)
    assert "hidden" not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options
    assert (options.catalog_key, rest) == ("k", {"s3.region": "eu"})
