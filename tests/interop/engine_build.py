"""Builds the engine process once: Maven finds the jars, javac compiles; the result is kept in the user's cache by what it is made of."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PROJECT = Path(__file__).parent / "engine"
OLDEST_JAVA = 17
_RESOLVE = "dependency:build-classpath"
_PATIENCE = 200


class EngineUnavailable(Exception):
    """There is no engine on this machine; the text is one line that says why."""


def java_home_tool(name: str) -> str | None:
    """The path of a JDK tool: of ``JAVA_HOME`` if it is set, else of the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(name, path=str(Path(home) / "bin") if home else None)


def java_command() -> str:
    """The ``java`` to run; raises ``EngineUnavailable`` for none or one that is too old."""
    java = java_home_tool("java")
    if java is None:
        raise EngineUnavailable("the Paimon engine needs Java 17, and there is no java here")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    digits = told.partition('version "')[2].partition(".")[0].partition('"')[0]
    if not digits.isdigit() or int(digits) < OLDEST_JAVA:
        raise EngineUnavailable(f"the Paimon engine needs Java {OLDEST_JAVA}, here is {told.splitlines()[0] if told else 'an unknown one'}")
    return java


def built() -> str:
    """The class path of the engine, built now if it is not in the cache; processes that ask at the same time build once.

    Raises ``EngineUnavailable``: no JDK, no Maven, or jars that are neither in the local repository nor to be had.
    """
    home = cache_directory() / made_of()
    found = _class_path(home)
    if found is None:
        home.parent.mkdir(parents=True, exist_ok=True)
        with (home.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = _class_path(home)
            if found is None:
                _build(home)
                found = _class_path(home)
    assert found is not None
    return found


def cache_directory() -> Path:
    """Where built engines are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyspark-paimon" / "interop-engine"


def made_of() -> str:
    """A name for what the engine is built from."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def sources() -> list[Path]:
    """The project file and the Java files."""
    return [PROJECT / "pom.xml", *sorted((PROJECT / "src").rglob("*.java"))]


def _class_path(home: Path) -> str | None:
    """The class path that a build has left, if every jar of it is still there."""
    try:
        jars = (home / "class-path").read_text().strip()
    except FileNotFoundError:
        return None
    if not all(Path(jar).exists() for jar in jars.split(os.pathsep)):
        shutil.rmtree(home)
        return None
    return f"{home / 'classes'}{os.pathsep}{jars}"


def _build(home: Path) -> None:
    """Build beside ``home`` and rename: a build that is interrupted leaves nothing that looks complete."""
    javac, maven = java_home_tool("javac"), shutil.which("mvn")
    if javac is None:
        raise EngineUnavailable("building the Paimon engine needs a JDK, and there is no javac here")
    if maven is None:
        raise EngineUnavailable("building the Paimon engine needs Maven, and there is no mvn here")
    with tempfile.TemporaryDirectory(prefix="build-", dir=home.parent) as scratch:
        place = Path(scratch) / "engine"
        place.mkdir()
        _resolve(maven, place / "class-path")
        jars = (place / "class-path").read_text().strip()
        java_files = [str(path) for path in sources() if path.suffix == ".java"]
        command = [javac, "-nowarn", "-proc:none", "-encoding", "UTF-8", "-cp", jars, "-d", str(place / "classes"), *java_files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the Paimon engine does not compile:\n{done.stderr}")
        place.rename(home)


def _resolve(maven: str, target: Path) -> None:
    """Write the class path of the project; from the local repository alone if that suffices, so that no network is asked."""
    command = [maven, "-B", "-q", "-f", str(PROJECT / "pom.xml"), _RESOLVE, "-DincludeScope=runtime", f"-Dmdep.outputFile={target}"]
    told = ""
    for extra in (["-o"], []):
        try:
            done = subprocess.run([*command, *extra], capture_output=True, text=True, check=False, timeout=_PATIENCE)
        except subprocess.TimeoutExpired as slow:
            raise EngineUnavailable(f"the Paimon engine's jars are not at hand and Maven got none in {_PATIENCE} s") from slow
        if done.returncode == 0 and target.exists():
            return
        told = done.stdout + done.stderr
    reason = next((line for line in told.splitlines() if line.startswith("[ERROR]")), "Maven failed")
    raise EngineUnavailable(f"the Paimon engine's jars are not at hand and cannot be fetched: {reason}")
