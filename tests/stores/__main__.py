"""Runs a command beside a server, which it reaches by its environment: ``python -m tests.stores [hdfs] COMMAND ARGUMENT...``.

Usually an S3 server with a bucket named ``tests``; with ``hdfs`` a cluster of HDFS, whose root is ``hdfs:///``. It ends with the command, and so
do its files.
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.java_project import JavaUnavailable
from tests.stores.hdfs_server import HdfsServer
from tests.stores.s3_server import S3Server


def main() -> int:
    hdfs = sys.argv[1:2] == ["hdfs"]
    name, kind, command = ("HDFS", HdfsServer, sys.argv[2:]) if hdfs else ("S3Proxy", S3Server, sys.argv[1:])
    try:
        with kind() as server:
            sys.stdout.write(f"{name} listens on 127.0.0.1:{server.port}, until the command has ended\n")
            sys.stdout.flush()
            done = subprocess.run(command, env=os.environ | server.environment(), check=False).returncode
        sys.stdout.write(f"{name} has ended, and what was on it is gone\n")
    except JavaUnavailable as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    return done


if __name__ == "__main__":
    sys.exit(main())
