"""Runs a command beside an S3 server, which it reaches by its environment: ``python -m tests.stores COMMAND ARGUMENT...``.

The server has a bucket named ``tests``; it ends with the command, and so do its files.
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.java_project import JavaUnavailable
from tests.stores.s3_server import S3Server


def main() -> int:
    try:
        with S3Server() as server:
            sys.stdout.write(f"S3Proxy listens on 127.0.0.1:{server.port}, until the command has ended\n")
            sys.stdout.flush()
            done = subprocess.run(sys.argv[1:], env=os.environ | server.environment(), check=False).returncode
        sys.stdout.write("S3Proxy has ended, and what was on it is gone\n")
    except JavaUnavailable as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    return done


if __name__ == "__main__":
    sys.exit(main())
