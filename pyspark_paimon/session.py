"""Spark sessions with the settings that this package wants: embedded Connect server, or a remote one.

An embedded server lives in a JVM that this process starts and that ends with it. It listens on 127.0.0.1 only, runs its
Python workers with this interpreter, and finds the installed (or checked-out) package, so that format ``paimon`` is known.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark_paimon.spark_errors import SparkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ProgressHandler: TypeAlias = Callable[..., None]
"""Called with the keywords ``stages``, ``inflight_tasks``, ``operation_id`` and ``done``."""

DEFAULT_PORT = 15002
OLDEST_JAVA = 17

RUNTIME_CONF: dict[str, str] = {
    "spark.sql.session.timeZone": "UTC",  # timestamps of Arrow batches carry the session's zone; ours are UTC
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",  # fastest between 50k and 100k rows
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.connect.progress.reportInterval": "500ms",
}
DRIVER_MEMORY = "2g"
SERVER_CONF: dict[str, str] = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "8",
}


def spark_session(
    url: str | None = None,
    *,
    app_name: str = "pyspark-paimon",
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    progress: ProgressHandler | None = None,
) -> SparkSession:
    """A Spark Connect session: to the server at ``url`` (``sc://host:port``), or to an embedded one.

    Without ``url`` the variable ``SPARK_REMOTE`` decides, and without that a server is started in this process' own JVM
    for ``master``. ``conf`` overrides the defaults of this module; ``progress`` is called with the keywords ``stages``,
    ``inflight_tasks``, ``operation_id`` and ``done`` about twice a second while a job runs. A second call returns the running
    session.

    Raises ``SparkUnavailable`` if pyspark or, for an embedded server, Java 17 is missing.

    >>> spark = spark_session(master="local[2]")  # doctest: +SKIP
    >>> spark.read.format("paimon").load("/warehouse/flights")  # doctest: +SKIP
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  # importing this package must not import Spark
    except ImportError as error:
        raise SparkUnavailable(
            f"pyspark is missing ({error}); install pyspark-paimon[spark], or pyspark-paimon[client] for a remote server"
        ) from error
    target = url or os.environ.get("SPARK_REMOTE") or master
    given = dict(conf or {})
    builder = SparkSession.builder.remote(target).appName(app_name)
    running = None if url else SparkSession.getActiveSession()
    if running is not None or target.startswith("sc://"):
        session = running or builder.getOrCreate()
        for key, value in (RUNTIME_CONF | given).items():
            if session.conf.isModifiable(key):
                session.conf.set(key, value)
    else:
        require_java()
        memory = given.pop("spark.driver.memory", DRIVER_MEMORY)
        for key, value in (SERVER_CONF | RUNTIME_CONF | given).items():
            builder = builder.config(key, value)
        with _server_environment(memory), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Failed to set", UserWarning)  # the client repeats what only the server's start can set
            session = builder.getOrCreate()
    if progress is not None:
        session.registerProgressHandler(progress)
    return session


def java_version() -> int | None:
    """Major version of the Java that Spark would start; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)  # noqa: S603  # the JAVA_HOME or PATH of the user
    except (OSError, subprocess.CalledProcessError):
        return None
    words = done.stderr.partition('"')[2].partition('"')[0].split(".")
    return int(words[0]) if words[0].isdigit() else None


def require_java() -> None:
    """Raise ``SparkUnavailable`` unless Java 17 or newer is at hand."""
    found = java_version()
    if found is None or found < OLDEST_JAVA:
        what = "no Java" if found is None else f"Java {found}"
        raise SparkUnavailable(f"Spark needs Java {OLDEST_JAVA} or newer and found {what}; install it, or set JAVA_HOME")


def package_root() -> str:
    """The directory from which this package was imported; workers need it on their path."""
    return str(Path(__file__).resolve().parent.parent)


@contextmanager
def _server_environment(memory: str) -> Iterator[None]:
    """The environment that an embedded JVM inherits; this process' own comes back afterwards.

    Spark fixes the port of an embedded server at 15002 and offers a free one only to tests; where 15002 is taken,
    that switch is the way to a second server on the machine.
    """
    paths = [package_root(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    path = os.pathsep.join(dict.fromkeys(paths))
    wanted = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path, "SPARK_DRIVER_MEMORY": memory}
    before = {key: os.environ.get(key) for key in wanted}
    os.environ.update(wanted)
    if not _port_is_free(DEFAULT_PORT):
        os.environ["SPARK_TESTING"] = "1"  # stays: the client reads it again whenever it opens a channel
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _port_is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


__all__ = ["RUNTIME_CONF", "SERVER_CONF", "java_version", "package_root", "require_java", "spark_session"]
