"""Whatever a public method is called with: it is done, or refused by an error of ours that names the argument."""

from __future__ import annotations

import inspect
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from paimon_base.errors import InvalidArgument, PaimonError
from pyspark_paimon import Catalog, Table
from pyspark_paimon.request.validate import check_arguments

ODD = [
    *(7, -1, 2**70, 1.5, float("nan"), True, None, "x", "", "\0", "a'b", "x" * 5000, b"x", object(), len, int),
    *([1], [], {}, {1: 2}, {"a": 1}, ("a", "b"), {"x"}, Decimal("1.5"), date(2024, 1, 1), datetime(2024, 1, 1)),  # noqa: DTZ001
    *(pd.NaT, pd.Series([1]), pd.DataFrame({"id": [1]}), np.int64(3), np.array([1, 2]), pa.array([1]), pa.scalar(3), pa.table({"id": [1]})),
]
NEEDED = {
    "data": pa.table({"id": [1], "s": ["a"]}),
    "set": {"s": "b"},
    "partitions": [],
    "indexes": {"bloom-filter": "id"},
    "options": {},
    "schema": pa.schema([("id", pa.int64())]),
    "type": "INT",
    "older_than": datetime(2024, 1, 1),  # noqa: DTZ001
    "changes": {},
}


def table(root, *, keys=("id",)):
    made = Table.create(str(root), "id BIGINT NOT NULL, s STRING", primary_keys=list(keys), options={"bucket": "1"} if keys else {})
    made.write(pa.table({"id": [1, 2, 3], "s": ["a", "b", None]}))
    made.create_tag("t1")
    return made


def calls(thing):
    """Every public method, each of its arguments in turn, each odd value for it."""
    for name in sorted(dir(thing)):
        if name.startswith("_") or isinstance(inspect.getattr_static(type(thing), name, None), property):
            continue
        method = getattr(thing, name)
        if not callable(method):
            continue
        taken = [p for p in inspect.signature(method).parameters.values() if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}]
        for parameter in taken:
            for value in ODD:
                given = {p.name: NEEDED.get(p.name, "x") for p in taken if p.default is p.empty}
                yield f"{name}({parameter.name}={value!r:.40})", method, {**given, parameter.name: value}


def untyped(made):
    """The calls that failed with something else than an error of ours."""
    found, tried = [], 0
    for what, method, given in made:
        tried += 1
        try:
            answer = method(**given)
            if type(answer).__name__ == "Scan":
                answer.to_arrow()
        except PaimonError:
            pass
        except Exception as error:  # noqa: BLE001 -- which it is, is the question
            found.append(f"{what}: {type(error).__name__}: {error}")
    assert tried > 100
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["keys", "append", "scan", "catalog"])
@pytest.mark.sampled(2)
def test_an_argument_of_any_kind_is_taken_or_refused_as_ours(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)  # "x" is a good path
    match kind:
        case "keys":
            thing = table(tmp_path / "t")
        case "append":
            thing = table(tmp_path / "t", keys=())
        case "scan":
            thing = table(tmp_path / "t").scan("id > 0")
        case _:
            thing = Catalog(str(tmp_path / "wh"))
            thing.create_table("x", "id BIGINT")
    assert untyped(calls(thing)) == []


def test_the_error_names_the_method_the_argument_and_what_is_wanted(tmp_path):
    made = table(tmp_path / "t")
    for call, told in (
        (lambda: made.compact(partitions=7), "compact: partitions is a list of dicts or None, not 7"),
        (lambda: made.update("id = 1", 7), "update: set is a dict or None, not 7"),
        (lambda: made.write(NEEDED["data"], mode=[1]), r"write: mode is a mode's name or None, not \[1\]"),
        (lambda: made.scan(timestamp=pd.NaT), "scan: timestamp is milliseconds"),
        (lambda: Table.open(str(tmp_path / "t"), spark=7), "spark must be a Spark session, classic or Connect, not int"),
        (lambda: made.scan(incremental=3), r"scan: incremental is a pair \(from, to\) or None, not 3"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            call()


def test_what_has_a_type_of_its_own_is_left_to_who_knows_it():
    def method(self, rows: Rows, names: Sequence[str] | None = None, *, flag: bool = False):  # noqa: F821
        return rows, list(names or ()), flag

    call = check_arguments(method)
    assert call(None, object, (name for name in ["a"]), flag=np.True_) == (object, ["a"], True)
    with pytest.raises(InvalidArgument, match="method: names is a list of names or None, not"):
        call(None, object, [1])
