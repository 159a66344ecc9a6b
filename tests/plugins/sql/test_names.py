"""A name of Spark's whose columns are copied again, whatever goes wrong on the way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from paimon_base.errors import PaimonError
from pyspark_paimon.plugins.sql import names


class Recording:
    """A session that remembers statements; ``fails`` is how the one begins that it refuses."""

    def __init__(self, fails: str) -> None:
        self.said: list[str] = []
        self.fails = fails
        self.catalog = SimpleNamespace(getTable=lambda _: SimpleNamespace(isTemporary=False))
        self.read = self

    def table(self, _: str) -> Any:
        return SimpleNamespace(schema=None)

    def format(self, _: str) -> Any:
        return self

    def options(self, **_: str) -> Any:
        return self

    def load(self) -> Any:
        if self.fails == "load":
            raise ValueError("no such table")
        return SimpleNamespace(columns=["id"])

    def sql(self, text: str) -> None:
        self.said.append(text)
        if text.startswith(self.fails):
            raise ValueError("no room")


@pytest.mark.parametrize(("fails", "said"), [("load", 0), ("DROP", 1)])
def test_a_name_is_kept_where_its_new_columns_cannot_be_read(monkeypatch, fails, said) -> None:
    monkeypatch.setattr(names, "stored_options", lambda _: {"path": "/t"})
    spark = Recording(fails)
    with pytest.raises(ValueError, match="no"):
        names.KnownTables(spark).renew(("db", "t"))
    assert len(spark.said) == said


def test_a_name_that_is_lost_all_the_same_is_told_with_the_way_back(monkeypatch) -> None:
    monkeypatch.setattr(names, "stored_options", lambda _: {"path": "/t"})
    with pytest.raises(
        PaimonError,
        match=r"db\.t: the Paimon table is changed, .* register it again: CREATE TABLE `db`\.`t` USING .* OPTIONS \('path' '/t'\)",
    ):
        names.KnownTables(Recording("CREATE")).renew(("db", "t"))
