"""Spark sessions for this package, embedded or remote.

``warm`` starts the Python processes of a session before the first question.

An embedded server runs in a JVM that this process starts and that ends with this process. It listens on 127.0.0.1 only.
It runs its Python workers with this interpreter, with this package on their path. So format ``paimon`` is known.
"""

from __future__ import annotations

import atexit
import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from manifest.io.threads import map_in_threads
from paimon_base.errors import InvalidArgument
from paimon_base.process import environment, ignore_pandas_notice, in_this_process, set_environment
from paimon_base.public import public
from pyspark_paimon._version import HOME
from pyspark_paimon.spark.client.address import DEFAULT_PORT, Address
from pyspark_paimon.spark.client.estimate import cores
from pyspark_paimon.spark.client.forks import ForkServer, can_fork
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.errors import SessionLost, SourceMissing, SparkUnavailable, raise_typed_errors
from pyspark_paimon.spark.wire.names import UNIQUE_NAME, WARM
from pyspark_paimon.spark.wire.session_storage import is_connect, send_storage_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_paimon.spark.wire.rpc import ServerFacts

ProgressHandler: TypeAlias = Callable[..., None]
"""Called with the keywords ``stages``, ``inflight_tasks``, ``operation_id`` and ``done``."""
OLDEST_JAVA = 17
RUNTIME_CONF: dict[str, str] = {
    "spark.sql.session.timeZone": "UTC",  # Arrow timestamps get the session's zone, and table values are UTC
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",  # fastest between 50k and 100k rows
    "spark.connect.progress.reportInterval": "500ms",
    "spark.sql.connect.serverStacktrace.enabled": "false",  # else eighty lines of the JVM's stack follow each message
    # SPARK-59042: the rule ends with NoSuchElementException at a correlated subquery in SELECT over a union. Scans may be unions.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion",
}
DRIVER_MEMORY = "2g"
PORT_CLAIM = Path(tempfile.gettempdir()) / f"pyspark-paimon-{getpass.getuser()}-{DEFAULT_PORT}.lock"
"""Lock file of the process whose embedded server uses Spark's default port, now or soon."""
_CLAIMED: dict[Path, int] = {}
_REMOTE: dict[str, SparkSession] = {}
_FORKS: list[ForkServer] = []
"""Fork server of the embedded servers of this process, if one was started."""
SERVER_CONF: dict[str, str] = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",  # Spark's default, except in the mode with a free port
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",  # as above
}

_ERROR_LOGS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers by which Spark's client prints each error that it raises as well, with its plan, as JSON."""
RETRY_SECONDS = 5.0
"""Seconds that a call waits for a server that does not answer. Spark's default is ten minutes."""


@public
def spark_session(
    url: str | None = None,
    *,
    token: str | None = None,
    app_name: str = "pyspark-paimon",
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    progress: ProgressHandler | None = None,
    new: bool = False,
    storage_options: Mapping[str, str] | None = None,
    retry_seconds: float | None = None,
) -> SparkSession:
    """Return a Spark Connect session, remote or embedded.

    A second call for the same server returns the running session, or a new one if that has ended.

    Raises ``SparkUnavailable`` if pyspark is missing, or if Java 17 is missing for an embedded server.
    Raises it also if no server listens at ``url``, or if the server rejects the token.

    Args:
        url: Address of a server, ``sc://host:port``. None: ``SPARK_REMOTE``, or else an embedded server in a JVM of this process.
        token: Token that the server requires. None: no token.
        app_name: Application name of an embedded server.
        master: Spark master of an embedded server.
        conf: Settings that override the defaults of this module.
        progress: Called about twice a second while a job of the session runs, as ``ProgressHandler`` describes.
        new: Create another session, with separate settings, temporary views and progress.
        storage_options: Access of the session's server to object stores, as in ``Table.open``.
            They are stored in a file of the session, never in a plan.
        retry_seconds: Seconds that any call of the session waits for a server that does not answer, before ``SessionLost``.
            None: 5, or what a running session has.

    >>> spark = spark_session(master="local[2]")  # doctest: +SKIP
    >>> spark.read.format("paimon").load("/warehouse/flights")  # doctest: +SKIP
    >>> spark_session("sc://spark.example.com:15002", token="...")  # doctest: +SKIP
    """
    ignore_pandas_notice()
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415  # importing this package must not import Spark
        from pyspark.sql import SparkSession  # noqa: PLC0415  # importing this package must not import Spark
    except ImportError as error:
        raise SparkUnavailable(
            f"pyspark is missing ({error}); install pyspark-paimon[spark], or pyspark-paimon[client] for a remote server"
        ) from error
    for name in _ERROR_LOGS:
        PySparkLogger.getLogger(name).setLevel("CRITICAL")
    if url is not None and not url.startswith("sc://"):
        raise InvalidArgument("the url of spark_session must be sc://host:port; without a url it starts a server")
    target, settings = url or os.environ.get("SPARK_REMOTE") or master, dict(conf or {})
    running = None if url else SparkSession.getActiveSession()
    if running is None and target.startswith("sc://"):
        session = _remote_session(Address.parse(target, token), RUNTIME_CONF | settings, new=new)
    elif running is not None:
        session = _adopted(_new_session(running)) if new else running
        _configure(session, RUNTIME_CONF | settings)
    else:
        session = _embedded_session(target, app_name, settings)
    if retry_seconds is not None:
        bound_retries(session, retry_seconds)
    if progress is not None:
        session.registerProgressHandler(progress)
    if storage_options is not None:
        send_storage_options(session, storage_options)
    return session


def _remote_session(address: Address, conf: Mapping[str, str], *, new: bool) -> SparkSession:
    """Return a session at ``address``."""
    url = address.for_spark()
    address.check()
    running = None if new else _REMOTE.get(url)
    if running is not None and not running.client.is_closed:
        with suppress(SessionLost):  # the server was restarted
            _configure(running, conf)
            return running
    session = _connect(url)
    try:
        _configure(session, conf)
    except Exception as error:
        _forget(session)
        if "UNAUTHENTICATED" not in str(error):
            raise
        raise SparkUnavailable(f"{address}: the server asks for a token; pass the right one to spark_session as argument 'token'") from None
    if not new:
        _REMOTE[url] = session
    return session


def _connect(url: str) -> SparkSession:
    from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: PLC0415  # as above

    from pyspark_paimon.spark.client.retries import channel_to  # noqa: PLC0415  # imports Spark

    set_environment("SPARK_CONNECT_MODE_ENABLED", "1")  # as Spark's builder of both kinds of sessions does
    # ``getOrCreate`` would return the active session, of any server.
    return _adopted(ConnectSession.Builder().channelBuilder(channel_to(url)).create())


def _new_session(running: SparkSession) -> SparkSession:
    """Return a new session at the server of ``running``, which stays Spark's active session."""
    if hasattr(running, "newSession"):
        return running.newSession()
    # Spark Connect has ``newSession`` since 4.3, and this is what it does. Its builder would change the active session.
    client: Any = running.client
    builder = deepcopy(client._builder)  # noqa: SLF001  # as above
    builder._params.pop(builder.PARAM_SESSION_ID, None)  # noqa: SLF001  # as above
    kind: Any = type(running)
    new_session: SparkSession = kind(builder)
    return new_session


def _adopted(session: SparkSession) -> SparkSession:
    """Return a new session with this package's retries, released when Python ends."""
    bound_retries(session, RETRY_SECONDS)
    if is_connect(session):  # else it is classic, and ends with its Spark context
        atexit.register(in_this_process(_release), session)
    return session


def _forget(session: SparkSession) -> None:
    """Close a session that its server refused, so that it is not Spark's active one."""
    session.client.close()
    kind: Any = type(session)  # its ``stop`` would also end an embedded server of this process
    if kind._default_session is session:  # noqa: SLF001  # as above
        kind._default_session = None  # noqa: SLF001  # as above
    if getattr(kind._active_session, "session", None) is session:  # noqa: SLF001  # as above
        kind._active_session.session = None  # noqa: SLF001  # as above


def bound_retries(session: SparkSession, seconds: float) -> None:
    """Limit the time that a call of ``session`` waits for its server."""
    if not seconds >= 0:
        raise InvalidArgument(f"retry_seconds must be a number of seconds, 0 or more, not {seconds}")
    if is_connect(session):  # a classic session makes no remote calls
        from pyspark_paimon.spark.client.retries import BoundedRetries  # noqa: PLC0415  # imports Spark

        session.client.set_retry_policies([BoundedRetries(seconds)])


def _release(session: SparkSession) -> None:
    """Release a session when Python ends."""
    # With two open sessions, Spark's client (4.2) waits for threads that have already ended.
    if not session.client.is_closed:
        session.client.set_retry_policies([])  # the server may be gone
        with suppress(Exception):
            session.client.release_session()
        session.client.close()


def _embedded_session(master: str, app_name: str, settings: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415  # as above

    require_java()
    builder = SparkSession.builder.remote(master).appName(app_name)
    memory = settings.pop("spark.driver.memory", DRIVER_MEMORY)
    for key, value in (SERVER_CONF | RUNTIME_CONF | settings).items():
        builder = builder.config(key, value)
    with _server_environment(memory, master), warnings.catch_warnings():
        # The client repeats settings that only the start of the server can set.
        warnings.filterwarnings("ignore", "Failed to set", UserWarning)
        session = builder.getOrCreate()
    bound_retries(session, RETRY_SECONDS)
    return session


def _configure(session: SparkSession, conf: Mapping[str, str]) -> None:
    with raise_typed_errors():
        for key, value in conf.items():
            if session.conf.isModifiable(key):
                session.conf.set(key, value)


def java_version() -> int | None:
    """Return the major version of Java that Spark would start.

    Uses JAVA_HOME if it is set, else PATH. None: no working Java found.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        process = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)  # noqa: S603  # the JAVA_HOME or PATH of the user
    except (OSError, subprocess.CalledProcessError):
        return None
    words = process.stderr.partition('"')[2].partition('"')[0].split(".")
    return int(words[0]) if words[0].isdigit() else None


def require_java() -> None:
    """Raise ``SparkUnavailable`` unless Java 17 or newer is installed."""
    version = java_version()
    if version is None or version < OLDEST_JAVA:
        what = "no Java" if version is None else f"Java {version}"
        raise SparkUnavailable(f"Spark needs Java {OLDEST_JAVA} or newer and found {what}; install it, or set JAVA_HOME")


def package_root() -> str:
    """Return the directory that contains this package.

    Workers need it on their path.
    """
    return str(Path(HOME).resolve())


@contextmanager
def _server_environment(memory: str, master: str) -> Iterator[None]:
    """Set the environment that an embedded JVM inherits.

    Restores the environment of this process afterwards, except ``SPARK_TESTING``.
    """
    paths = [package_root(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    path = os.pathsep.join(dict.fromkeys(paths))
    variables = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path, "SPARK_DRIVER_MEMORY": memory}
    if can_fork(master):
        if not _FORKS or _FORKS[0].process.poll() is not None:  # else the JVM of an earlier session may still run its script
            _FORKS[:] = [ForkServer({**os.environ, **variables})]
            atexit.register(in_this_process(_FORKS[0].stop))
        variables["PYSPARK_PYTHON"] = _FORKS[0].python
    with environment(variables):
        if not (claims(PORT_CLAIM) and _port_is_free(DEFAULT_PORT)):
            # An embedded server has the fixed port 15002. Only the switch for tests selects a free port.
            # It is needed if 15002 is in use, or if another process is about to use it.
            set_environment("SPARK_TESTING", "1")  # stays: the client reads it again whenever it opens a channel
        yield


def claims(lock_path: Path) -> bool:
    """Return whether this process owns the lock file ``lock_path``.

    The first successful call locks the file until the process ends.

    >>> import tempfile
    >>> claims(Path(tempfile.mkdtemp(), "claim"))
    True
    """
    # A JVM listens seconds after its port was found free, so one of two servers that start together would fail.
    if lock_path not in _CLAIMED:
        try:
            import fcntl  # noqa: PLC0415  # missing on Windows

            # Others can write into the directory of temporary files: their link is not followed.
            file = os.open(lock_path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except (ImportError, OSError):
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        _CLAIMED[lock_path] = file
    return True


def _port_is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def server_of(spark: SparkSession) -> ServerFacts | None:
    """Return the server's facts about this package.

    None: the server does not know the data source.
    """
    question = rpc.AskServer()
    options = {"path": "/", rpc.QUESTION: question.to_text()}
    try:
        with raise_typed_errors():
            return question.answer_of(rpc.answer_of(spark.read.format(UNIQUE_NAME).options(**options).load().schema))
    except SourceMissing:
        return None


@public
def warm(spark: SparkSession) -> float:
    """Start the session's Python processes; return the seconds used.

    Starts the processes that plan, read, write and commit, and one process per core for tasks.
    Each session has separate processes: one session per client is cheaper than many. With a master ``local`` they are forks of one
    process that has loaded all modules. Workers end after a minute without work; Spark forks them again.

    Raises ``SourceMissing`` if the server lacks the package.

    >>> pyspark_paimon.warm(spark)  # doctest: +SKIP
    4.2
    """
    started = time.perf_counter()
    tasks = cores(spark)
    options = {"path": "/", WARM: str(tasks)}

    def read(session: Any) -> None:
        session.read.format(UNIQUE_NAME).options(**options).load().collect()

    def write(session: Any) -> None:
        session.range(0, tasks, 1, tasks).write.format(UNIQUE_NAME).mode("append").options(**options).save()

    with raise_typed_errors():
        map_in_threads(lambda job: job(spark), (read, write), threads=2)
    return round(time.perf_counter() - started, 3)
