"""Runs a command beside a server, which it reaches by its environment: ``python -m tests.stores [SERVER] COMMAND ARGUMENT...``.

Without a SERVER an S3 server with a bucket named ``tests``; with ``hdfs`` a cluster, whose root is ``hdfs:///``. A server of a catalog gives the
options of ``Catalog.create`` as JSON in ``PAIMON_TEST_CATALOG``. The server ends with the command, and so do its files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.stores.azure_server import AzureServer
from tests.stores.hdfs_server import HdfsServer
from tests.stores.hive_server import HiveServer
from tests.stores.local_server import UNAVAILABLE, LocalServer
from tests.stores.mariadb_server import MariaDbServer
from tests.stores.postgres_server import PostgresServer
from tests.stores.rest_server import RestServer
from tests.stores.s3_server import S3Server
from tests.stores.versity_server import VersityServer

SERVERS: dict[str, type[LocalServer]] = {
    "s3": S3Server,
    "versity": VersityServer,
    "azure": AzureServer,
    "hdfs": HdfsServer,
    "hive": HiveServer,
    "rest": RestServer,
    "mariadb": MariaDbServer,
    "postgres": PostgresServer,
}


def main(arguments: Sequence[str]) -> int:
    """Return the command's exit status; 2 without a command, 1 where the server cannot run."""
    kind, command = (SERVERS[arguments[0]], arguments[1:]) if arguments[:1] and arguments[0] in SERVERS else (S3Server, arguments)
    if not command or command[0].startswith("-"):
        sys.stderr.write(f"usage: python -m tests.stores [{'|'.join(SERVERS)}] COMMAND ARGUMENT...\n")
        return 2
    try:
        with kind() as server:
            environment = server.environment()
            names = ", ".join(environment)
            sys.stdout.write(f"{kind.name} listens on 127.0.0.1:{server.port}, until the command has ended; it is reached by {names}\n")
            sys.stdout.flush()
            done = subprocess.run(command, env=os.environ | environment, check=False).returncode
        sys.stdout.write(f"{kind.name} has ended, and what was on it is gone\n")
    except UNAVAILABLE as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    return done


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
