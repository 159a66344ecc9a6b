"""Options of a REST catalog: names, defaults of the server, and what is never shown."""

from __future__ import annotations

import pickle
from http.client import HTTPConnection

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon.plugins.catalogs.rest.options import RestOptions, of_stores

GIVEN = {"metastore": "rest", "uri": "https://catalog.example.com/base/", "warehouse": "w", "token.provider": "bear", "token": "s3cr3t"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"tokn": "x"}, "did you mean 'token'"),
        ({"data-token.enable": "true"}, "did you mean 'data-token.enabled'"),
        ({"token.provider": "basic"}, "'basic' is not supported"),
        ({"dlf.access-key-id": "x"}, "is for the provider 'dlf' only"),
        ({"dlf.access-key": "x"}, "is unknown; options are dlf.access-key-id"),
        ({"io-cache.enabled": "true"}, "has no such cache"),
        ({"s3.acces-key": "x"}, "s3.access-key"),
        ({"metastore": "dlf"}, "use 'filesystem', 'hive', 'jdbc' or 'rest'"),
    ],
)
def test_what_is_no_option_is_refused_by_name(more, said) -> None:
    with pytest.raises(UnsupportedOption, match=said):
        RestOptions.of(GIVEN | more)


@pytest.mark.parametrize(
    "more",
    [
        {"uri": ""},
        {"uri": "ftp://host"},
        {"uri": "http://user:word@host"},
        {"uri": "http://host:port"},
        {"token": ""},
        {"token": "two\nlines"},
        {"token": "s3cr3t\N{EURO SIGN}"},
        {"header.x": "\ud800"},
        {"header.x": "s3cr3t\n"},
        {"header.x": "s3cr3t\x07"},
        {"header.": "s3cr3t"},
        {"header.x y": "s3cr3t"},
        {"header.x:": "s3cr3t"},
        {"header.x\r\nHost": "s3cr3t"},
        {"uri": "http://h\N{LATIN SMALL LETTER O WITH DIAERESIS}st"},
        {"warehouse": ["w"]},
        {"data-token.enabled": "maybe"},
        {"rest.client.max-retries": "-1"},
        {"rest.client.read-timeout": "soon"},
    ],
)
def test_values_that_are_none_are_refused(more) -> None:
    with pytest.raises((InvalidArgument, UnsupportedOption)) as error:
        RestOptions.of(GIVEN | more)
    assert "s3cr3t" not in str(error.value)


def test_the_server_adds_what_was_not_said_and_insists_on_some() -> None:
    options = RestOptions.of(GIVEN | {"s3.endpoint": "http://ours", "header.x-a": "1"})
    merged = options.merge(
        {"prefix": "p", "s3.endpoint": "http://theirs", "s3.region": "eu", "header.x-b": "2", "other": "engine", "warehouse": "another"},
        {"data-token.enabled": "true", "uri": "http://elsewhere", "token": "another"},
    )
    assert (merged.uri, merged.token, merged.prefix, merged.data_tokens) == ("https://catalog.example.com/base", "s3cr3t", "p", True)
    assert merged.storage == {"s3.endpoint": "http://ours", "s3.region": "eu"}
    assert (merged.headers, merged.warehouse) == ({"x-a": "1", "x-b": "2"}, "w")


@settings(max_examples=200)
@given(st.text(max_size=4), st.text(max_size=4), st.sampled_from(["defaults", "overrides"]))
@example("", "s3cr3t", "overrides")
@example("x", "s3cr3t\r\nHost: other", "defaults")
def test_headers_of_a_server_can_be_sent_or_are_refused_by_name(name, value, member) -> None:
    options, header = RestOptions.of(GIVEN), {f"header.{name}": value}
    refusal, sent = "", dict[str, str]()
    try:
        sent = dict(options.merge(**{"defaults": {}, "overrides": {}, member: header}).headers)
    except InvalidArgument as error:
        refusal = str(error)
    assert sent or (repr(f"header.{name}") in refusal and "which the server sets" in refusal and "s3cr3t" not in refusal)
    connection = HTTPConnection("localhost")
    connection.putrequest("GET", "/")
    for item in sent.items():
        connection.putheader(*item)


def test_what_dlf_lends_for_oss_is_understood_and_the_rest_passed_over() -> None:
    lent = {
        "fs.oss.accessKeyId": "i",
        "fs.oss.accessKeySecret": "s",
        "fs.oss.securityToken": "t",
        "fs.oss.endpoint": "e",
        "fs.oss.user.agent": "x",
    }
    assert set(of_stores(lent)) == {*lent} - {"fs.oss.user.agent"}


def test_nothing_secret_is_shown_and_all_of_it_travels() -> None:
    options = RestOptions.of(GIVEN | {"s3.secret-key": "hidden", "header.x-key": "hidden"})
    assert not [secret for secret in ("s3cr3t", "hidden") if secret in repr(options)]
    assert pickle.loads(pickle.dumps(options)) == options
