"""Where contenders run: each in a virtual environment of its own, made once and kept in the user's cache directory."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.contenders.worker import Contender, Unavailable

ROOT = Path(__file__).parents[1]


def cache() -> Path:
    """The folder for environments, and for what contenders' ``command`` builds."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyspark-paimon"


def command(name: str, contender: Contender) -> list[str]:
    """The command line that a job is appended to; raises ``Unavailable``."""
    if contender.command is not None:
        return contender.command(cache() / "benchmarks")
    python = environment(contender.pins) if contender.pins else Path(sys.executable)
    return [str(python), "-m", f"benchmarks.contenders.{name}"]


def home_of(pins: tuple[str, ...]) -> Path:
    """The folder of the environment with these packages."""
    key = hashlib.sha256("\n".join([sys.version, *pins]).encode()).hexdigest()[:16]
    return cache() / f"peer-{key}"


def is_made(home: Path) -> bool:
    """Whether an environment is there, and whole."""
    return (home / "complete").exists()


def environment(pins: tuple[str, ...], patience: float = 600) -> Path:
    """The Python of an environment with these packages, made if it is not there; one process at a time makes it.

    Raises ``Unavailable``, also where a step takes longer than ``patience`` seconds.
    """
    home = home_of(pins)
    if not is_made(home):
        home.parent.mkdir(parents=True, exist_ok=True)
        with home.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_made(home):
                _install(pins, home, patience)
    return home / "bin" / "python"


def _install(pins: tuple[str, ...], home: Path, patience: float) -> None:
    shutil.rmtree(home, ignore_errors=True)  # what an interrupted run left
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins]
    for line in ([sys.executable, "-m", "venv", str(home)], pip):
        try:
            done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=patience)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"cannot be installed here: {error}") from error
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Unavailable(f"cannot be installed here: {reason}")
    (home / "complete").write_text("\n".join(pins), encoding="utf-8")


__all__ = ["ROOT", "Unavailable", "cache", "command", "environment", "home_of", "is_made"]
