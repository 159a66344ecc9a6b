"""A real HDFS for tests: Hadoop's own mini cluster, which Maven brings, on 127.0.0.1 and files of its own, for as long as it is held.

One process with a name node and three data nodes. With one data node each new file takes half a second: the last acknowledgement comes before
the name node knows of the block, and then clients wait.
"""

from __future__ import annotations

import json
import os
from typing import Self

from benchmarks.java_project import JavaUnavailable, java_tool
from tests.stores.local_server import LocalServer
from tests.stores.maven import class_path

VERSION = "3.4.2"
_NODES = 3
_PATIENCE_SECONDS = 120
_SITE = """<configuration><property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:{port}</value></property></configuration>
"""


class HdfsServer(LocalServer):
    """A running cluster; ``port`` of its name node."""

    name = "HDFS"

    def __enter__(self) -> Self:
        java = java_tool("java")
        if java is None:
            raise JavaUnavailable("the mini cluster of HDFS needs Java")
        jars = class_path(f"org.apache.hadoop:hadoop-client-minicluster:{VERSION}")
        self._make_folder("hdfs")
        details = self.folder / "details"
        nodes = ["-datanodes", str(_NODES), "-format", "-nnport", "0", "-httpport", "0", "-writeDetails", str(details)]
        settings = ["-D", f"dfs.replication={_NODES}", "-D", "dfs.namenode.fs-limits.min-block-size=1024"]
        main = "org.apache.hadoop.test.MiniDFSClusterManager"
        command = [java, "-Xmx400m", "-cp", os.pathsep.join(map(str, jars)), main, *nodes, *settings]
        self._run(command)
        if not self._answers_within(_PATIENCE_SECONDS, lambda: details.exists() and details.read_text().strip().endswith("}")):
            self._give_up()
        self.port = int(json.loads(details.read_text())["namenode_port"])
        (self.folder / "conf").mkdir()
        (self.folder / "conf" / "core-site.xml").write_text(_SITE.format(port=self.port))
        return self

    def uri(self, port: int | None = None) -> str:
        """The root of the cluster, or of the proxy on ``port``."""
        return f"hdfs://127.0.0.1:{port or self.port}"

    def environment(self) -> dict[str, str]:
        """Variables by which a process reaches it as ``hdfs:///``."""
        return {"HADOOP_CONF_DIR": str(self.folder / "conf")}


__all__ = ["HdfsServer"]
