"""A real Hive metastore for tests: Hive's own, which Maven brings, with a database in memory, on 127.0.0.1, for as long as it is held."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from benchmarks.environments import cache
from benchmarks.java_project import JavaProject
from tests.stores.local_server import LocalServer, free_port

PROJECT = JavaProject("Hive's metastore", Path(__file__).parent / "hive_metastore", cache() / "hive-metastore")
_PATIENCE_SECONDS = 120
_OPENED = ["--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/java.net=ALL-UNNAMED"]


class HiveServer(LocalServer):
    """A running metastore; ``port`` of 127.0.0.1."""

    name = "Hive's metastore"

    def __enter__(self) -> Self:
        java, jars = PROJECT.java(), PROJECT.class_path()
        self._make_folder("hive")
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
        self._run(command)
        if not self._answers_within(_PATIENCE_SECONDS, self._listens):
            self._give_up()
        return self

    def options(self) -> dict[str, str]:
        """Options of a catalog, but for its warehouse."""
        return {"metastore": "hive", "uri": f"thrift://127.0.0.1:{self.port}"}


__all__ = ["HiveServer"]
