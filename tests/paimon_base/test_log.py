"""All rooms log in one tree, below ``pyspark_paimon``: what was done, and why, without secrets, and never by the root logger."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.snapshot.manager import SnapshotManager
from paimon_base.log import TREE, logger_of, silence_logs
from pyspark_paimon import Table
from pyspark_paimon.example import cities
from tests.source_tree import MODULES, ROOMS, source


def test_every_logger_of_every_module_is_in_the_tree() -> None:
    """Loggers are made in one place, by the module's own name."""
    for path in MODULES:
        text = source(path)
        if path.as_posix() == "paimon_base/log.py":
            continue
        assert not re.search(r"(?m)^\s*(import|from) logging\b", text), path
        assert text.count("logger_of(") == text.count("_LOG = logger_of(__name__)"), path
    assert not [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in ROOMS[:3]]


def test_nothing_is_said_where_nobody_listens_and_the_root_logger_is_left_alone() -> None:
    assert [type(handler) for handler in logging.getLogger(TREE).handlers] == [logging.NullHandler]
    assert logging.getLogger(TREE).level == logging.NOTSET
    assert logger_of("manifest.x").parent is logging.getLogger(TREE)


def test_what_was_done_is_told_and_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, TREE)
    table = cities()
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    table.create_tag("v1")
    table.delete("id = 1")
    table.rollback_to(tag="v1")
    told = {level: [r.getMessage() for r in caplog.records if r.levelno == level] for level in (logging.INFO, logging.DEBUG)}
    for part in (
        "committed snapshot 2, COMPACT of ",
        ": compacted 1 files into 1 on level",
        "expired snapshots 1 to 1",
        "rolled back to snapshot 2",
    ):
        assert any(part in line for line in told[logging.INFO]), part
    for part in ("picked for full compaction: 1 files", "keeping 1 to 1 of 2 snapshots"):
        assert any(part in line for line in told[logging.DEBUG]), part
    assert {record.name.partition(".")[0] for record in caplog.records} == {TREE}


def test_a_lost_race_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    table = Table.create(tmp_path / "t", "id INT")
    taken = iter((False, *[True] * 9))
    create = SnapshotManager.try_create
    monkeypatch.setattr(SnapshotManager, "try_create", lambda self, *given: next(taken) and create(self, *given))
    caplog.set_level(logging.INFO, TREE)
    assert table.write(pa.table({"id": pa.array([1], pa.int32())})).snapshot_id == 1
    assert "did not follow snapshot 0, attempt 1" in caplog.text


def test_no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = logger_of("manifest.example")
    logger_of("manifest.example")
    assert len(log.filters) == 1
    caplog.set_level(logging.INFO, TREE)
    log.info("%s refused, s3.secret-key=%s", "s3://user:word@bucket/t", "hidden-word")
    assert caplog.messages == ["s3://***@bucket/t refused, s3.secret-key=***"]


def test_nothing_is_logged_of_what_nothing_comes_of(caplog: pytest.LogCaptureFixture) -> None:
    log = logger_of("manifest.example")
    caplog.set_level(logging.INFO, TREE)
    with silence_logs():
        log.warning("tried")
    log.warning("done")
    assert caplog.messages == ["done"]
