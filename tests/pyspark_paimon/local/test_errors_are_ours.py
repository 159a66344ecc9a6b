"""What leaves the public face is a typed error that names what is wrong, and clean-up hides none."""

from __future__ import annotations

import errno
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from manifest.io.file_io import LocalFileIO
from pyspark_paimon import Catalog, CommitConflict, InvalidArgument, StorageError, Table, UnsupportedOption

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "n": pa.array([1, 2], pa.int32())})


def test_numbers_and_booleans_are_option_values(create) -> None:
    table = create("id BIGINT, n INT", options={"bucket": 4, "write-only": True, "compaction.small-file-ratio": 0.5})
    assert (table.options["bucket"], table.options["write-only"], table.options["compaction.small-file-ratio"]) == ("4", "true", "0.5")
    table.alter_options({"write-only": False, "target-file-size": None})
    assert table.options["write-only"] == "false"
    table.write(ROWS, options={"write-only": True})


@pytest.mark.parametrize("value", [None, ["4"], {}, b"4"])
def test_another_option_value_is_refused_by_name(create, value) -> None:
    with pytest.raises(UnsupportedOption, match=r"'snapshot\.num-retained\.min'"):
        create("id BIGINT, n INT", options={"snapshot.num-retained.min": value})


@pytest.mark.parametrize(
    "day", [date(2100, 1, 1), "2100-01-01", "2100-01-01T00:00:00+00:00", datetime(2100, 1, 1, tzinfo=UTC), 4102444800000]
)
def test_a_time_is_text_a_date_or_milliseconds(create, day) -> None:
    table = create("id BIGINT, n INT")
    table.write(ROWS)
    assert table.scan(timestamp=day).count() == 2


@pytest.mark.parametrize("time", ["yesterday", "2024-13-01", 1.5, True, b"2024-01-01", ()])
def test_what_is_no_time_is_refused(create, time) -> None:
    table = create("id BIGINT, n INT")
    table.write(ROWS)
    with pytest.raises(InvalidArgument, match="time"):
        table.scan(timestamp=time)


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "keys"])
def test_a_clean_up_that_fails_does_not_hide_the_first_error(create, monkeypatch, keys) -> None:
    table = create("id BIGINT, n INT", primary_keys=keys, options={"deletion-vectors.enabled": "true"} if not keys else {})
    table.write(ROWS)

    def conflict(*_: Any, **__: Any) -> Any:
        raise CommitConflict("the first error")

    def denied(self: LocalFileIO, path: str) -> bool:
        raise PermissionError(errno.EACCES, "denied", path)

    monkeypatch.setattr("manifest.commit.file_store_commit.append_change", conflict)
    monkeypatch.setattr(LocalFileIO, "delete", denied)
    for change in (lambda: table.write(ROWS), lambda: table.delete("id = 1")):
        with pytest.raises(CommitConflict, match="the first error"):
            change()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
@pytest.mark.local_files
def test_a_data_file_that_storage_does_not_give_is_not_called_corrupt(create, monkeypatch, number) -> None:
    table = create("id BIGINT, n INT")
    table.write(ROWS)

    def denied(self: LocalFileIO, path: str, size: int | None = None) -> Any:
        raise OSError(number, "as the test wants it", path)

    monkeypatch.setattr(LocalFileIO, "open_input", denied)
    with pytest.raises(StorageError, match=r"data-.*\.parquet") as refused:
        table.scan().to_arrow()
    assert refused.value.errno == number


def test_arguments_of_another_kind_are_refused_by_method_and_name(create) -> None:
    table = create("id BIGINT, n INT")
    table.write(ROWS)
    calls = {
        "create_tag: name": lambda: table.create_tag(7),
        "delete_tag: name": lambda: table.delete_tag(None),
        "expire_snapshots: retain_min": lambda: table.expire_snapshots(retain_min="x"),
        "create_branch: name": lambda: table.create_branch(["b"]),
        "rollback_to: snapshot": lambda: table.rollback_to("x"),
        "create: comment": lambda: Table.create(f"{table.path}-2", "id INT", comment=object()),
        "set_comment: .*unpaired surrogate": lambda: table.set_comment("\ud800"),
    }
    for text, call in calls.items():
        with pytest.raises(InvalidArgument, match=text):
            call()
    for call in (
        lambda: Table.open(7),
        lambda: Table.open(table.path, branch=7),
        lambda: Table.create(f"{table.path}-3", "id INT", options=7),
        lambda: table.scan(columns=7),
        lambda: table.scan(columns=[7]),
        lambda: table.scan(order_by=7),
        lambda: table.write(ROWS, commit_id=7),
        lambda: table.write(ROWS, options=7),
        lambda: table.add_column(7, "INT"),
        lambda: list(table.follow("no offset")),
        lambda: table.create_tag("t", time_retained=7),
        lambda: Catalog(7),
        lambda: Catalog(table.path).table(7),
        lambda: Catalog(table.path).create_database(7),
    ):
        with pytest.raises(InvalidArgument, match=r"7|no offset|options is a dict"):
            call()
    for named in (lambda: Table.open("/\ud800"), lambda: table.delete_tag("\ud800")):
        with pytest.raises(StorageError, match="unpaired surrogate"):
            named()
