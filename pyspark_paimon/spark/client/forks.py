"""Fork server of a Spark server on this machine, as a child process.

A script stands in for Python where Spark starts its processes. It runs ``spark/launcher.py``, which asks the fork server.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from paimon_base.process import in_this_process

_HOME = Path(__file__).resolve().parents[1]
_PATIENCE_SECONDS = 5.0
_IDLE_SECONDS = 120.0


class ForkServer:
    """Running fork server of a Spark server that has the environment ``environment``.

    A daemon ends when it has had no worker for ``idle_seconds``. Spark ends idle workers after a minute.
    """

    def __init__(self, environment: Mapping[str, str], idle_seconds: float = _IDLE_SECONDS) -> None:
        folder = tempfile.mkdtemp(prefix="pyspark-paimon-forks-")
        self._cleanup = weakref.finalize(self, in_this_process(shutil.rmtree), folder, ignore_errors=True)
        script, path = Path(folder, "python"), str(Path(folder, "socket"))
        launcher = shlex.join([sys.executable, "-S", "-E", "-P", str(_HOME / "launcher.py"), path, sys.executable])
        script.write_text(f'#!/bin/sh\nexec {launcher} "$@"\n', encoding="utf-8")
        script.chmod(0o700)
        # A directory of temporary files may forbid programs (noexec).
        self.python = str(script) if os.access(script, os.X_OK) else sys.executable
        """Path of the script that Spark must run as Python."""
        # spark-submit sets the first variable for all processes of Spark, and Spark the other for its Python.
        ours = {**environment, "PYTHONHASHSEED": "0", "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER"}
        self.process = subprocess.Popen(  # noqa: S603  # this Python and our own module
            [sys.executable, "-m", "pyspark_paimon.spark.fork_server", path, str(idle_seconds)], env=ours, stdin=subprocess.PIPE, start_new_session=True
        )  # fmt: skip

    def stop(self) -> None:
        """End the process. Daemons end with Spark's server, or when they are idle."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_PATIENCE_SECONDS)
        self.process.kill()
        self.process.wait()
        self._cleanup()


def can_fork(master: str) -> bool:
    """Return whether all Python processes of Spark run on this machine and can be forked.

    >>> can_fork("spark://host:7077")
    False
    """
    return master.partition("[")[0] == "local" and hasattr(os, "fork")
