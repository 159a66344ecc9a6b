"""What goes wrong on a Spark server, at a place that a test chooses: for tests only, and unknown to the product.

A client registers a subclass of our source whose writers look into a directory whenever they reach a point, and do what they find
there: raise, die, or wait until they are let go. Each visit leaves a file, so that a test knows where the server is, in which
process. The class travels by value (cloudpickle), for servers do not have this file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

from pyspark import TaskContext, cloudpickle
from pyspark.sql.datasource import DataSourceArrowWriter

from lsm.data_files.spill import SpillSpace
from manifest.io.failpoints import VARIABLE
from pyspark_paimon.spark.client import engine
from pyspark_paimon.spark.source import PaimonDataSource
from pyspark_paimon.spark.write import writer as spark_writer

PATIENCE_SECONDS = 60
POINTS = ("rows", "files", "commit", "publish", "published", "abort")
"""In order: a task has its first rows; it has made its files; the commit hook is called, is about to commit, has committed; abort."""


def reached(folder: str, point: str, **more: object) -> None:
    """Note the visit and do what is there to be done, each thing once."""
    context = TaskContext.get()
    visit = {"pid": os.getpid(), **more} | ({} if context is None else {"task": context.partitionId(), "attempt": context.attemptNumber()})
    name = f"{point}-{uuid.uuid4()}"
    Path(folder, f".{name}").write_text(json.dumps(visit))
    Path(folder, f".{name}").rename(Path(folder, f"visit-{name}"))
    for order in sorted(Path(folder).glob(f"order-{point}-*")):
        taken = order.with_name(f"taken-{uuid.uuid4()}")
        try:
            order.rename(taken)
        except FileNotFoundError:  # another task was faster
            continue
        done_as_told(folder, point, taken.read_text())
        return


def done_as_told(folder: str, point: str, what: str) -> None:
    if what == "raise":
        raise RuntimeError(f"a fault at {point}, as the test wants it")
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hold":
        until = time.monotonic() + PATIENCE_SECONDS
        while not Path(folder, f"release-{point}").exists() and time.monotonic() < until:
            time.sleep(0.01)
    elif what.startswith("die at "):
        os.environ[VARIABLE] = what.removeprefix("die at ")


@contextmanager
def counted_spills():
    """The files that sort buffers of this process spill in the block."""
    spills, write = [], SpillSpace.write

    def counting(self, tables):
        spills.append(write(self, tables))
        return spills[-1]

    SpillSpace.write = counting
    try:
        yield spills
    finally:
        SpillSpace.write = write


class FaultyWriter(DataSourceArrowWriter):
    """A writer of ours that stops at every point."""

    def __init__(self, inner, folder):
        self.inner, self.folder = inner, folder

    def write(self, iterator):
        def rows():
            for number, batch in enumerate(iterator):
                if number == 0:
                    reached(self.folder, "rows")
                yield batch

        with counted_spills() as spills:
            message = self.inner.write(rows())
        reached(self.folder, "files", spills=len(spills))
        return message

    def commit(self, messages):
        reached(self.folder, "commit")
        known = {name: getattr(spark_writer, name) for name in ("commit_rows", "commit_tasks")}
        try:
            for name, function in known.items():
                setattr(spark_writer, name, self._stopping(function))
            self.inner.commit(messages)
        finally:  # Spark uses the process again
            for name, function in known.items():
                setattr(spark_writer, name, function)
            os.environ.pop(VARIABLE, None)

    def abort(self, messages):
        reached(self.folder, "abort")
        self.inner.abort(messages)

    def _stopping(self, function):
        folder = self.folder

        def stopping(*arguments):
            reached(folder, "publish")
            function(*arguments)
            reached(folder, "published")

        return stopping


class Faults:
    """The test's side: orders for the server, and what it has reached."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.name = f"faulty_{uuid.uuid4().hex}"

    def register(self, spark):
        """Make the faulty source known to a session."""
        name, folder = self.name, str(self.folder)

        class FaultyPaimon(PaimonDataSource):
            @classmethod
            def name(cls):
                return name

            def writer(self, schema, overwrite):
                return FaultyWriter(super().writer(schema, overwrite=overwrite), folder)

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        try:
            spark.dataSource.register(FaultyPaimon)
        finally:
            cloudpickle.unregister_pickle_by_value(sys.modules[__name__])

    def used(self, monkeypatch=None):
        """Have this process' clients ask for the faulty source."""
        if monkeypatch is None:
            engine.FORMAT_NAME = self.name
        else:
            monkeypatch.setattr(engine, "FORMAT_NAME", self.name)

    def order(self, point, what, times=1):
        """``what`` shall happen at the next visits of ``point``: raise, die, hold, or ``die at`` a fault point of the commit."""
        for number in range(times):
            (self.folder / f"order-{point}-{number}-{uuid.uuid4()}").write_text(what)

    def release(self, point):
        """Let go who is held at ``point``, now and later."""
        (self.folder / f"release-{point}").touch()

    def visits(self, point):
        """Who has reached ``point``: process, task and attempt."""
        return [
            json.loads(path.read_text()) for path in sorted(self.folder.glob(f"visit-{point}-*"), key=lambda path: path.stat().st_mtime_ns)
        ]

    def wait_for(self, point, count=1):
        """The visits of ``point`` once there are ``count``. Raises ``AssertionError`` if there are never so many."""
        return wait_until(lambda: (found := self.visits(point))[: len(found) if len(found) >= count else 0], f"{count} visits of {point}")

    @contextmanager
    def released_in_the_end(self):
        """Hold nobody longer than the test runs."""
        try:
            yield self
        finally:
            for order in self.folder.glob("order-*"):
                order.unlink(missing_ok=True)
            for point in POINTS:
                self.release(point)


def wait_until(look, what, seconds=PATIENCE_SECONDS, pause=0.02):
    """What ``look`` finds in the end; it is asked after each ``pause``. Raises ``AssertionError`` if that is nothing, again and again."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = look()
        if found:
            return found
        time.sleep(pause)
    raise AssertionError(f"never happened: {what}")
