"""The command that serves tables to Spark Connect clients: ``serve``."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Annotated, Any

import typer

from fileindex.base.errors import InvalidArgument
from manifest.storage.allowed_roots import ROOTS
from pyspark_paimon.spark.client.address import DEFAULT_PORT
from pyspark_paimon.spark.client.serve import TOKEN_VARIABLE, ConnectServer, ServerSettings, check

Port = Annotated[int, typer.Option("--port", help="Port to listen at; 0 for a free one.")]
Host = Annotated[str, typer.Option("--host", help="Address to listen at; any but this machine's own needs a token.")]
Token = Annotated[str | None, typer.Option("--token", envvar=TOKEN_VARIABLE, help="What clients have to know; better by the variable.")]
Roots = Annotated[str | None, typer.Option("--roots", envvar=ROOTS, help="Where tables may be: /warehouse:s3://bucket/warehouse.")]
Master = Annotated[str, typer.Option("--master", help="Where Spark runs: local[*], or spark://host:7077 of a cluster.")]
Memory = Annotated[str, typer.Option("--memory", help="Memory of the server's JVM; Python workers have theirs beside it.")]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="A setting of Spark: key=value; may be repeated.")]
CheckOnly = Annotated[bool, typer.Option("--check", help="Start nothing: ask the server that runs there, exit code 0 if it is well.")]


def serve(
    *,
    port: Port = DEFAULT_PORT,
    host: Host = "127.0.0.1",
    token: Token = None,
    roots: Roots = None,
    master: Master = "local[*]",
    memory: Memory = "2g",
    conf: Conf = None,
    check_only: CheckOnly = False,
) -> None:
    """Serve tables to Spark Connect clients, until SIGTERM or Ctrl-C.

    Needs Java 17 and pyspark-paimon[spark]. Clients call spark_session("sc://host:port", token=...). Those of other machines send a token
    over TLS only: put a proxy with TLS before the server.
    """
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # no line of a server's log
    if check_only:
        _tell(check(f"sc://{host}:{port}", token))
        return
    pairs = [pair.partition("=") for pair in conf or []]
    if not all(key and equals for key, equals, _ in pairs):
        raise InvalidArgument("--conf takes key=value")
    given = {key: value for key, _, value in pairs}
    settings = ServerSettings(port, host, token, roots, master, memory, given)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with ConnectServer(settings, _tell) as server:
            found = server.check() or "not asked"
            who = "who knows the token" if token else "anybody on this machine"
            _tell(f"ready at {server.address} ({found}) for {who}; tables in {roots or 'any directory'}")
            code = server.wait()
            _tell(f"the server ended by itself with code {code}")
            raise typer.Exit(1)
    except KeyboardInterrupt:
        _tell("stopped")


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # the log of a server


__all__ = ["serve"]
