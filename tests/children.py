"""Python processes that tests start. What they do depends on no variable that the shell happens to have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
_DROPPED = {"SPARK_TESTING", "SPARK_PYTHON_RUNTIME"}
"""With the first, PySpark refuses to be imported where the second is missing. Tests over Spark set the first in this process."""


def child_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without what Spark's tests set, and with ``variables``."""
    return {name: value for name, value in os.environ.items() if name not in _DROPPED} | variables


def run_python(
    code: str,
    *arguments: str,
    flags: tuple[str, ...] = (),
    check: bool = True,
    timeout: float = 300,
    variables: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process, in the root of the repository.

    flags: Of the interpreter.
    check: Fail with what the process wrote to stderr unless it ended with 0.
    """
    command = [sys.executable, *flags, "-c", code, *arguments]
    environment = child_environment(**(variables or {}))
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    assert not check or done.returncode == 0, done.stderr[-3000:]
    return done
