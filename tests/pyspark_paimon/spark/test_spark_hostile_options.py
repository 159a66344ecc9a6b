"""What a client may put into options is text of a strict schema; the rest is refused, and nothing of it is run or unpickled."""

from __future__ import annotations

import base64
import builtins
import json
import pickle

import pyarrow as pa
import pytest

from paimon_base.errors import InvalidArgument, PaimonError
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.arrow_stream import decode_batches

pytest.importorskip("pyspark", reason="the server side needs pyspark")

import ast

from pyspark_paimon.spark.server import schema  # after the check for pyspark
from tests.build import keyed
from tests.source_tree import mentioning, parsed

OPTIONS = (rpc.QUESTION, rpc.COMMAND, rpc.SCAN, rpc.WRITE, rpc.HASHES)
PARSERS = (rpc.parse_question, rpc.parse_command, rpc.parse_job, rpc.parse_scan, rpc.parse_hash_scan)


class Opens:
    """Unpickled, it would write to the file that it names."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture
def path(tmp_path):
    table = keyed(tmp_path / "t", "id BIGINT, v STRING")
    table.write(pa.table({"id": [1], "v": ["a"]}))
    return str(tmp_path / "t")


@pytest.fixture
def mark(tmp_path):
    """A file that is there afterwards if something was run."""
    yield tmp_path / "mark"
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_is_no_request(parse, protocol, mark):
    pickled = pickle.dumps(Opens(mark), protocol)
    for text in (pickled.decode("latin1"), base64.b64encode(pickled).decode(), json.dumps(base64.b64encode(pickled).decode())):
        with pytest.raises(InvalidArgument, match="is invalid"):
            parse(text)


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "__import__('os').system('true')",
        "{'name': 'request.state.SchemaOf'}",
        '{"name": "builtins.Eval", "job": "eval", "arguments": {"code": "1"}}',
        '{"__class__": "os.system", "__reduce__": []}',
        '{"name": "request.state.SchemaOf", "arguments": {"id": NaN}}',
        "!!python/object/apply:os.system ['true']",
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_code_nesting_and_other_tongues_are_no_request(parse, text):
    with pytest.raises(InvalidArgument, match="is invalid"):
        parse(text)


def test_unknown_members_are_refused_in_every_request():
    for text in (
        '{"name": "request.state.SchemaOf", "arguments": {"id": null, "then": "run"}}',
        '{"name": "request.scan_questions.CountCheaply", "arguments": {"request": {"columns": ["id"], "snapshot_id": 1, "hook": "os.system"}}}',
    ):
        with pytest.raises(InvalidArgument, match="Extra inputs"):
            rpc.parse_question(text)
    with pytest.raises(InvalidArgument, match="Extra inputs"):
        rpc.parse_job('{"job": "rows", "request": {"commit_id": "c", "mode": "append"}, "owned": true, "setup": "import os"}')


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
def test_a_request_without_measure_is_not_even_read(parse):
    with pytest.raises(InvalidArgument, match="the maximum is 67108864"):
        parse(" " * ((1 << 26) + 1))


@pytest.mark.parametrize("name", ["../../evil", "a/b", "a\\b", "a\0b", "", "x" * 201, "$(true)", "a b"])
def test_a_commit_cannot_be_named_so_that_its_files_lie_elsewhere(name):
    with pytest.raises(InvalidArgument, match="commit_id"):
        rpc.parse_question(json.dumps({"name": "spark.wire.rpc.AskOutcome", "arguments": {"commit_id": name}}))
    with pytest.raises(InvalidArgument, match="commit_id"):
        rpc.parse_job(json.dumps({"job": "rows", "request": {"commit_id": name, "mode": "append"}, "owned": True}))


@pytest.mark.parametrize(
    "options",
    [
        {"evil": "1"},
        {"paimon.evil": "1"},
        {"path": "/t\0"},
        {"path": ""},
        {"path": "s3://key:hunter2@bucket/t"},
        {"branch": "../../other"},
        {"scan.tag-name": "../../../etc/passwd"},
        {"scan.snapshot-id": "__import__('os')"},
        {"columns": "__import__('os')"},
        {"filter": "__import__('os').system('true')"},
        {"filter": "id = 1; DROP TABLE t"},
        {"filter": "(" * 5_000 + "id = 1" + ")" * 5_000},
        {"filter": "id = (SELECT 1)"},
        {rpc.FORM: "pickle", rpc.SCAN: '{"columns": ["id"], "snapshot_id": 1}'},
        {rpc.SCAN: '{"columns": ["id"], "snapshot_id": 1, "predicate": 7}'},
    ],
    ids=lambda options: next(iter(options.items()))[0] + ":" + next(iter(options.values()))[:20],
)
def test_what_users_may_say_is_checked_by_name(path, options):
    with pytest.raises(PaimonError) as caught:
        schema({"path": path, **options})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "predicate", ["[1", '{"and": 3}', '{"op": "eval"}', '{"call": ["os.system", "true"]}', "[" * 100_000, '{"and":[' * 50_000]
)
def test_a_filter_tree_that_is_none_is_refused_when_it_is_read(predicate):
    with pytest.raises(PaimonError):
        assert rpc.parse_scan(json.dumps({"columns": ["id"], "snapshot_id": 1, "predicate": predicate}))


def test_blobs_are_arrow_streams_or_nothing(mark):
    for blob in (pickle.dumps(Opens(mark)), b"", b"ARROW1\0\0", b"\xff" * 64):
        with pytest.raises((pa.ArrowInvalid, OSError, EOFError)):
            list(decode_batches(blob))


def test_nothing_that_answers_options_calls_eval_exec_or_an_unpickler(path, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("called with what came in an option")

    schema({"path": path, "filter": "id = 1"})  # pydantic evaluates the annotations of models that are imported
    monkeypatch.setattr(pickle, "loads", forbidden)
    monkeypatch.setattr(pickle, "load", forbidden)
    monkeypatch.setattr(builtins, "eval", forbidden)
    answer = schema({"path": path, rpc.QUESTION: SchemaOf().to_text()})
    assert SchemaOf.answer_of(answer[0].metadata[rpc.ANSWER]).primary_keys == ("id",)
    assert schema({"path": path, "filter": "id = 1", "columns": "v"}).names == ["v"]


UNPICKLERS = {"pickle", "cloudpickle", "marshal", "shelve", "dill", "yaml"}
EVALUATORS = {"eval", "exec", "compile", "__import__"}


def test_our_modules_name_no_unpickler():
    bad = []
    for path in mentioning(*UNPICKLERS, *(f"{name}(" for name in EVALUATORS)):
        for node in ast.walk(parsed(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if UNPICKLERS & {name.split(".")[0] for name in names} or called in EVALUATORS:
                bad.append((str(path), node.lineno))
    assert bad == []
