"""A virtual environment with ``pyspark-client`` and no Spark, Java or pyspark jars: what a user of a remote server has.

It is of another Python minor version than the tests' own where the machine has one, for then nothing that Spark pickles could
be read by the server. It is made once, in the user's cache, and named by what was asked for.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MINORS = ("3.13", "3.12", "3.11")
_PATIENCE = 600


class NoThinClient(Exception):
    """The environment cannot be made; the message says why."""


def requirements() -> list[str]:
    """What ``pip install pyspark-paimon[client]`` installs besides the package itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return sorted([*project["dependencies"], *project["optional-dependencies"]["client"]])


def interpreter() -> str:
    """A Python of another minor version than this one, or this one."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    for minor in (minor for minor in MINORS if minor != here):
        for candidate in _candidates(minor):
            if _version(candidate) == minor:
                return candidate
    return sys.executable


def _candidates(minor: str) -> Iterator[str]:
    yield f"python{minor}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from (str(found) for found in sorted(pyenv.glob(f"{minor}.*/bin/python{minor}"), reverse=True))
    uv = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "uv" / "python"
    yield from (str(found) for found in sorted(uv.glob(f"cpython-{minor}.*/bin/python{minor}"), reverse=True))


def _version(python: str) -> str | None:
    """``major.minor`` of an interpreter that runs and can make environments."""
    probe = "import ensurepip, sys, venv; print(f'{sys.version_info.major}.{sys.version_info.minor}')"
    try:
        done = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def interpreters() -> list[str]:
    """The interpreters of all minor versions of ``MINORS`` that the machine has, the newest first."""
    found = (next((each for each in _candidates(minor) if _version(each) == minor), None) for minor in MINORS)
    return [python for python in found if python is not None]


def thin_python(python: str | None = None, more: Sequence[str] = ()) -> str:
    """The interpreter of the environment, made now if need be, of ``python`` and with ``more`` packages. Raises ``NoThinClient``."""
    python, wanted = python or interpreter(), [*requirements(), *more]
    label = hashlib.sha256("\n".join([python, *wanted]).encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pyspark-paimon"
    home = cache / f"thin-client-{label}"
    made = home / "bin" / "python"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{home.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # several test runs may want it at once
            if not (home / "complete").exists():
                _run(python, "-m", "venv", "--clear", str(home))
                _run(str(made), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", *wanted)
                (home / "complete").touch()
    except OSError as error:
        raise NoThinClient(f"no thin client can be made in {cache}: {error}") from error
    return str(made)


def _run(*command: str) -> None:
    # Where SPARK_TESTING is set, as our own server has it, pyspark-client looks for packages of tests while pip builds it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PATIENCE, env=environment)
    except subprocess.CalledProcessError as error:
        last = next((line for line in error.stderr.splitlines() if "error:" in line.lower()), "it said nothing").strip()
        raise NoThinClient(f"no thin client can be made: {' '.join(command[:4])}: {last}") from error
    except subprocess.TimeoutExpired as error:
        raise NoThinClient(f"no thin client can be made: {' '.join(command[:4])} took more than {_PATIENCE} s") from error
