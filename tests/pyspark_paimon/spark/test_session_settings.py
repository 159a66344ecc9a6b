"""``spark.paimon.*``: which settings are for a table, and which are refused by name."""

from __future__ import annotations

import pytest

from paimon_base.errors import UnsupportedOption
from pyspark_paimon.spark.wire.session_settings import check_setting, paimon_settings

PATH = "/warehouse/db.db/t"


@pytest.mark.parametrize(
    ("conf", "wanted"),
    [
        ({"spark.paimon.target-file-size": "1 mb", "spark.sql.shuffle.partitions": "2"}, {"target-file-size": "1 mb"}),
        ({"spark.paimon.*.db.t.scan.snapshot-id": "3", "spark.paimon.scan.snapshot-id": "2"}, {"scan.snapshot-id": "3"}),
        ({"spark.paimon.paimon.*.*.file.block-size": "1 mb"}, {"file.block-size": "1 mb"}),
        ({"spark.paimon.*.other.t.bucket": "3", "spark.paimon.*.db.other.bucket": "3"}, {}),
        ({"spark.paimon.glue.db.t.nobody.knows": "3"}, {}),
        ({"spark.paimon.requiredSparkConfsCheck.enabled": "false"}, {"requiredSparkConfsCheck.enabled": "false"}),
        ({"spark.paimon.partial-update.ignore-delete": "true"}, {"partial-update.ignore-delete": "true"}),
    ],
)
@pytest.mark.parametrize("path", [PATH, f"{PATH}$branch_b", f"{PATH}$audit_log"])
def test_the_settings_of_a_table(path, conf, wanted) -> None:
    assert paimon_settings(conf, path) == wanted


@pytest.mark.parametrize("key", ["spark.paimon.nonsense", "spark.paimon.*.db.t.nonsense", "spark.paimon.write.nonsense"])
def test_a_setting_that_is_no_option_is_refused_by_name(key) -> None:
    for check in (lambda: paimon_settings({key: "1"}, PATH), lambda: check_setting(key, "1")):
        with pytest.raises(UnsupportedOption) as caught:
            check()
        assert caught.value.option == key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bucket", "3"),
        ("branch", "b"),
        ("write.hive-style-dynamic-partition.enabled", "true"),
        ("chain-table.enabled", "true"),
        ("query-auth.enabled", "false"),
    ],
)
def test_what_one_call_cannot_have_is_refused_when_it_is_set(key, value) -> None:
    for place in ("", "*.db.t."):
        with pytest.raises(UnsupportedOption, match=rf"spark\.paimon\.{key}"):
            check_setting(f"spark.paimon.{place}{key}", value)


@pytest.mark.parametrize(
    "key", ["spark.paimon.scan.snapshot-id", "spark.paimon.incremental-between", "spark.sql.ansi.enabled", "spark.paimon.glue.a.b.c"]
)
def test_other_settings_are_sparks(key) -> None:
    check_setting(key, "1")
