from __future__ import annotations

import pickle

import pytest

from paimon_base.errors import InvalidArgument, UnknownColumn, UnsupportedOption
from paimon_base.redaction import names_secret, redact, shown


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("s3://AKIA:wJalr@bucket/t", "s3://***@bucket/t"),
        ("S3A://AKIA:wJalr@bucket", "S3A://***@bucket"),
        ("sc://host:15002/;token=abc;use_ssl=true", "sc://host:15002/;token=***;use_ssl=true"),
        ("https://acc.blob/x?sig_token=abc&sv=1", "https://acc.blob/x?sig_token=***&sv=1"),
        ("{'s3.secret-key': 'a b', 'bucket': '4'}", "{'s3.secret-key': ***, 'bucket': '4'}"),
        ('{"oauth.token":"x","n":1}', '{"oauth.token":***,"n":1}'),
        ("password: hunter2, next", "password: ***, next"),
        ("fs.oss.accessKeyId=LTAI fs.oss.accessKeySecret=abc", "fs.oss.accessKeyId=*** fs.oss.accessKeySecret=***"),
        ("option 'fs.s3a.access.key': AKIA is no option", "option 'fs.s3a.access.key': *** is no option"),
    ],
)
def test_a_secret_is_hidden(text, safe):
    assert redact(text) == safe


@pytest.mark.parametrize(
    "text",
    [
        "/warehouse/db.db/orders/bucket-0/data-1.parquet is missing",
        "option 'bucket': '0' is no number of buckets",
        "option 's3.secret-key': is unknown",
        "unknown column 'tokens', did you mean 'token'; columns are: token, id",
        "primary-key=id, sequence.field=ts, file-index.bloom-filter.columns=id",
        "mail@example.org wrote to file:///t",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


def test_a_hostile_text_takes_no_longer_than_its_length_asks_for():
    for piece in ("9", "a.", "a://", "token", "token='", "x://y", "token "):
        redact(piece * 20_000)  # quadratic patterns would need minutes: the test's own limit stops them


def test_every_typed_error_hides_them_in_text_and_repr_and_after_travel():
    error = InvalidArgument("s3://key:secret@b/t: token=abc")
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert "secret" not in str(each)
        assert "abc" not in repr(each)
    assert str(UnsupportedOption("s3.secret-key", "'abc' is no key")) == "option 's3.secret-key': *** is no key"
    assert str(UnknownColumn("citi", ("id", "city"))) == "unknown column 'citi', did you mean 'city'; columns are: id, city"


def test_options_are_shown_without_values_of_secrets():
    assert shown({"s3.access-key": "AKIA", "bucket": "4", "uri": "thrift://u:p@h"}) == {
        "s3.access-key": "***",
        "bucket": "4",
        "uri": "thrift://***@h",
    }
    assert [name for name in ("token", "dlf.access-key-id", "jdbc.password", "bucket", "key") if names_secret(name)] == [
        "token",
        "dlf.access-key-id",
        "jdbc.password",
    ]
