"""Command ``serve``."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer

from manifest.storage.allowed_roots import ROOTS
from paimon_base.errors import InvalidArgument
from paimon_base.process import ignore_pandas_notice
from pyspark_paimon.spark.client.address import DEFAULT_PORT
from pyspark_paimon.spark.client.serve import TOKEN_VARIABLE, ConnectServer, ServerSettings, check

Port = Annotated[int, typer.Option("--port", help="Port to listen on; 0 selects a free one.")]
Host = Annotated[str, typer.Option("--host", help="Address to listen on; any other than localhost needs a token.")]
Token = Annotated[
    str | None, typer.Option("--token", envvar=TOKEN_VARIABLE, help="Secret that clients must send; prefer the environment variable.")
]
Roots = Annotated[str | None, typer.Option("--roots", envvar=ROOTS, help="Allowed locations of tables: /warehouse:s3://bucket/warehouse.")]
Master = Annotated[str, typer.Option("--master", help="Spark master: local[*], or spark://host:7077 of a cluster.")]
Memory = Annotated[str, typer.Option("--memory", help="Memory of the server's JVM. Python workers need additional memory.")]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="Spark setting: key=value; repeatable.")]
CheckOnly = Annotated[bool, typer.Option("--check", help="Start no server, but check the running one. Exit code 0 if it is healthy.")]


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
    """Serve tables to Spark Connect clients.

    The server runs until SIGTERM or Ctrl-C. It needs Java 17 and pyspark-paimon[spark]. Clients call
    spark_session("sc://host:port", token=...). Clients on other machines send a token over TLS only: put a proxy with TLS
    before the server.
    """
    ignore_pandas_notice()
    if check_only:
        _report(check(f"sc://{host}:{port}", token))
        return
    pairs = [pair.partition("=") for pair in conf or []]
    if not all(key and equals for key, equals, _ in pairs):
        raise InvalidArgument("--conf takes key=value")
    conf_values = {key: value for key, _, value in pairs}
    settings = ServerSettings(port, host, token, roots, master, memory, conf_values)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with ConnectServer(settings, _report) as server:
            server_state = server.check() or "not checked"
            clients = "clients with the token" if token else "all users of this machine"
            _report(f"ready at {server.address} ({server_state}) for {clients}; tables in {roots or 'any directory'}")
            code = server.wait()
            _report(f"the server stopped unexpectedly with code {code}")
            raise typer.Exit(1)
    except KeyboardInterrupt:
        _report("stopped")


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # standard error is the server's log
