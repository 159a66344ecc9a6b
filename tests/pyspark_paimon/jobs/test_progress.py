"""Telling people how far a long operation has come."""

from __future__ import annotations

import io
import sys
import threading
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pyarrow as pa
import pytest

from pyspark_paimon import ProgressEvent, Table
from pyspark_paimon.jobs.progress import ProgressBar, chosen, reporting_start, reporting_tasks


def event(stage, done, total=None):
    return ProgressEvent(stage=stage, done=done, total=total, unit="files")


def test_a_bar_rewrites_its_line_until_all_is_done() -> None:
    bar = ProgressBar(io.StringIO())
    for shown in (event("write", 1000), event("compact", 0, 2), event("compact", 1, 2), event("compact", 2, 2), event("compact", 1, 4)):
        bar(shown)
    lines = bar.output.getvalue().split("\n")
    assert lines[0] == "\rwrite 1,000 files"
    assert lines[1].split("\r")[1:] == [
        f"compact [{'#' * filled}{'.' * (30 - filled)}] {done} of 2 files" for filled, done in ((0, 0), (15, 1), (30, 2))
    ]
    assert lines[2].startswith("\rcompact [#######")


def test_a_shorter_line_hides_the_longer_one_before() -> None:
    bar = ProgressBar(io.StringIO())
    bar(event("write", 1_000_000))
    bar(event("write", 1))
    assert bar.output.getvalue().split("\r")[2] == "write 1 files        "


def test_true_means_a_bar_on_a_terminal_and_nothing_means_silence(monkeypatch) -> None:
    assert chosen(True) is None, "standard error is no terminal here"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert isinstance(chosen(True), ProgressBar)
    assert chosen(False) is chosen(None) is None
    assert chosen(print) is print


def test_true_means_a_bar_in_a_notebook(monkeypatch) -> None:
    shell: list[object] = []
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell[0] if shell else None))
    assert chosen(True) is None, "IPython is imported, and does not run"
    shell.append(object())
    assert isinstance(chosen(True), ProgressBar)


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_the_first_request_of_a_session_says_what_it_waits_for(monkeypatch, patience) -> None:
    monkeypatch.setattr("pyspark_paimon.jobs.progress._START_PATIENCE", patience)
    bar, other = ProgressBar(io.StringIO()), ProgressBar(io.StringIO())
    session = Session()
    with reporting_start(session, bar):
        end = time.monotonic() + 10
        while not bar.output.getvalue() and not patience and time.monotonic() < end:
            time.sleep(0.01)
    with reporting_start(session, other):
        time.sleep(0.1)
    line = "\rstarting Python on the server, first use of this session"
    assert bar.output.getvalue() == ("" if patience else f"{line}{line}\n")
    assert other.output.getvalue() == ""


def test_a_first_request_that_fails_is_told_again(monkeypatch) -> None:
    monkeypatch.setattr("pyspark_paimon.jobs.progress._START_PATIENCE", 0.0)
    session, events, seen = Session(), [], threading.Event()

    def progress(shown) -> None:
        events.append(shown.done)
        seen.set()

    def fail() -> None:
        assert seen.wait(10)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"), reporting_start(session, progress):
        fail()
    seen.clear()
    with reporting_start(session, progress):
        assert seen.wait(10)
    assert events == [0, 0, 1]


def test_what_is_over_soon_is_not_worth_a_line() -> None:
    bar = ProgressBar(io.StringIO(), patience=3600.0)
    for shown in (event("scan", 0, 2), event("scan", 2, 2), event("compact", 1, 2)):
        bar(shown)
    assert bar.output.getvalue() == ""


def test_a_bar_moves_with_bytes() -> None:
    bar = ProgressBar(io.StringIO())
    bar(ProgressEvent(stage="compact", done=1, total=3, unit="buckets", bytes_done=9 << 20, total_bytes=10 << 20))
    assert bar.output.getvalue() == f"\rcompact [{'#' * 27}...] 1 of 3 buckets, 9.0 MiB of 10.0 MiB"


def test_long_jobs_tell_of_bytes_and_end_with_all_of_them(create, set_thresholds) -> None:
    set_thresholds(small_bucket_bytes=0)  # each bucket is told of
    events: list[ProgressEvent] = []
    table = Table.open(create(options={"bucket": "3"}).path, progress=events.append)
    table.write(pa.table({"id": range(300), "city": ["a"] * 300, "n": pa.nulls(300)}))
    table.compact(full=True)
    table.fsck("quick")
    last = {event.stage: event for event in events}
    files = sum(table.files(snapshot=1)["file_size"].to_pylist())
    assert last["write"].bytes_done == last["write"].total_bytes > 300 * 8
    assert (last["write"].done, last["write"].total) == (300, 300)
    assert (last["compact"].bytes_done, last["compact"].total_bytes) == (files, files)
    moved = [event.bytes_done for event in events if event.stage == "compact"]
    assert moved == sorted(moved)
    assert len(set(moved)) == 3
    assert all(event.done == event.total for event in last.values()), "each bar ends with a newline"


KEYED = {"bucket": "1", "write-only": "true", "num-sorted-run.compaction-trigger": "99"}


@pytest.fixture
def job(tmp_path):
    """What a job on a table of six files in one bucket tells, with how many buckets it was."""

    def run(work, *, keys=("id",), options=KEYED):
        events: list[ProgressEvent] = []
        table = Table.create(tmp_path / "t", "id BIGINT, n BIGINT", primary_keys=keys, options=dict(options), progress=events.append)
        for start in range(6):
            table.write(pa.table({"id": range(start, 600, 6), "n": range(100)}))
        events.clear()
        work(table)
        return events

    return run


def moved(events, stage):
    """How bytes and pieces grew in a stage, which must end with all of them."""
    told = [event for event in events if event.stage == stage]
    steps = [(event.done, event.bytes_done) for event in told]
    assert steps == sorted(steps), "no event takes back what another has told"
    assert (told[-1].done, told[-1].bytes_done) == (told[-1].total, told[-1].total_bytes or told[-1].bytes_done)
    assert all(event.done < event.total for event in told[:-1] if event.total is not None), "a bar ends once"
    return told


def test_a_bar_moves_inside_the_compaction_of_one_bucket(job) -> None:
    told = moved(job(lambda table: table.compact(full=True)), "compact")
    assert told[-1].total == 1
    assert len({event.bytes_done for event in told}) >= 6


def test_a_bar_moves_inside_one_file_by_row_groups(job) -> None:
    options = {**KEYED, "file.block-size": "1 kb"}

    def work(table):
        table.compact(full=True)
        table.scan("n % 2 = 0").to_arrow()

    told = moved(job(work, options=options), "scan")
    assert told[-1].total == 1
    assert 0 < told[0].bytes_done < told[0].total_bytes


@pytest.mark.parametrize(
    ("stage", "work"),
    [
        ("scan", lambda table: table.scan().to_arrow()),
        ("scan", lambda table: table.scan("n > 10").to_pandas()),
        ("scan", lambda table: table.scan(order_by="n", limit=3).to_arrow()),
        ("scan", lambda table: table.scan(limit=3).to_arrow()),
        ("analyze", lambda table: table.analyze()),
        ("delete", lambda table: table.delete("n > 10")),
        ("merge", lambda table: table.merge(pa.table({"id": range(6), "n": range(6)}), on="id").when_not_matched_insert_all().execute()),
        ("update", lambda table: table.update("n > 10", {"n": 0})),
    ],
)
@pytest.mark.parametrize("keys", [("id",), ()])
@pytest.mark.sampled(2)
def test_what_reads_many_files_moves_with_each_of_them(job, stage, work, keys) -> None:
    told = moved(job(work, keys=keys, options=KEYED if keys else {"write-only": "true"}), stage)
    assert len(told) > 3 or "limit" in str(work.__code__.co_consts)


def test_rows_that_are_flushed_are_told_of_and_a_delete_too(job) -> None:
    def work(table):
        table.write(pa.table({"id": range(5000), "n": range(5000)}), options={"target-file-size": "1 kb"})

    told = moved(job(work), "flush")
    assert told[-1].total == 5000
    assert len(told) > 5


def test_files_that_expire_or_are_orphans_are_counted_as_they_go(job) -> None:
    def work(table):
        table.compact(full=True)
        table.expire_snapshots(retain_min=1, retain_max=1)
        table.remove_orphan_files(older_than=datetime.now(tz=UTC))

    events = job(work)
    assert moved(events, "expire")[-1].done > 6
    assert moved(events, "orphans")[-1].done == 0


def test_rewriting_indexes_and_checking_move_inside_their_jobs(job) -> None:
    def work(table):
        table.alter_options({"file-index.bloom-filter.columns": "n"})
        table.rewrite_file_index()
        table.fsck()

    events = job(work)
    assert len({event.bytes_done for event in moved(events, "rewrite-file-index")}) >= 6
    assert len(moved(events, "fsck")) > 6


def test_a_table_opened_with_progress_shows_a_bar(create, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("pyspark_paimon.jobs.progress._PATIENCE", 0.0)
    path = create().path
    table = Table.open(path, progress=True)
    table.write(pa.table({"id": [1], "city": ["a"], "n": pa.nulls(1)}))
    table.compact(full=True)
    shown = capsys.readouterr().err
    assert "compact [##############################] 1 of 1 buckets, " in shown
    assert shown.endswith("\n")
    assert "write [##############################] 1 of 1 rows, " in shown


class Session:
    """What is used of a Spark Connect session."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self):
        self.handlers = []

    def registerProgressHandler(self, handler):  # Spark's name
        self.handlers.append(handler)

    def removeProgressHandler(self, handler):  # Spark's name
        self.handlers.remove(handler)

    def report(self, *stages, done=False):
        known = [SimpleNamespace(num_completed_tasks=completed, num_tasks=tasks) for completed, tasks in stages]
        for handler in list(self.handlers):
            for _ in range(2):  # each report comes twice
                handler(stages=known, inflight_tasks=1, operation_id="o", done=done)


def test_reports_of_a_session_become_events_and_the_end_is_told_once() -> None:
    session, events = Session(), []
    with reporting_tasks(session, events.append, "compact"):
        session.report((0, 4))
        session.report((4, 4))
        session.report((4, 4), (1, 2))
        session.report((4, 4), (2, 2), done=True)
    assert [(told.done, told.total, told.unit) for told in events] == [(0, 4, "tasks"), (5, 6, "tasks"), (6, 6, "tasks")]
    assert session.handlers == []


def test_a_failed_job_has_no_end_and_leaves_no_handler() -> None:
    session, events = Session(), []

    def job():
        with reporting_tasks(session, events.append, "write"):
            session.report((1, 4))
            raise RuntimeError("lost")

    with pytest.raises(RuntimeError):
        job()
    assert [told.done for told in events] == [1]
    assert session.handlers == []


def test_jobs_of_other_threads_are_not_told_of_and_the_end_of_a_quick_one_is() -> None:
    session, events = Session(), []
    with reporting_tasks(session, events.append, "write"):
        other = threading.Thread(target=session.report, args=((1, 4),))
        other.start()
        other.join()
    assert [(told.done, told.total) for told in events] == [(1, 1)]


def test_classic_sessions_tell_nothing() -> None:
    events: list[object] = []
    with reporting_tasks(SimpleNamespace(), events.append, "write"):
        pass
    assert events == []
