"""A real Hive metastore for tests: Hive's own, which Maven brings, with a database in memory, on 127.0.0.1, for as long as it is held."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from benchmarks.environments import cache
from benchmarks.java_project import JavaProject, JavaUnavailable
from tests.stores.s3_server import free_port

PROJECT = JavaProject("Hive's metastore", Path(__file__).parent / "hive_metastore", cache() / "hive-metastore")
_PATIENCE_SECONDS = 120
_OPENED = ["--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/java.net=ALL-UNNAMED"]


@dataclass
class HiveServer:
    """A running metastore; ``port`` of 127.0.0.1."""

    port: int = 0
    folder: Path = Path()
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        java, jars = PROJECT.java(), PROJECT.class_path()
        self.folder = Path(tempfile.mkdtemp(prefix="paimon-hive-"))
        self.port = free_port()
        settings = {
            "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            "metastore.warehouse.dir": str(self.folder / "warehouse"),
            "metastore.event.db.notification.api.auth": "false",
            "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
            "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        }
        site = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
        (self.folder / "metastore-site.xml").write_text(f"<configuration>{site}</configuration>")
        command = [java, "-Xmx400m", *_OPENED, "-cp", f"{self.folder}{os.pathsep}{jars}", "tests.Metastore", str(self.port)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 5).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        log = (self.folder / "log").read_text()
        self.__exit__()
        raise JavaUnavailable(f"Hive's metastore did not start: {log[-500:]}")

    def options(self) -> dict[str, str]:
        """Options of a catalog, but for its warehouse."""
        return {"metastore": "hive", "uri": f"thrift://127.0.0.1:{self.port}"}


__all__ = ["HiveServer"]
