"""Builds a small Java project once: Maven finds the jars, javac compiles; the result is kept in a cache folder by what it is made of."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

OLDEST_JAVA = 17
_RESOLVE = "dependency:build-classpath"
_PATIENCE = 200


class JavaUnavailable(Exception):
    """The project cannot be built or run on this machine; the text is one line that says why."""


def java_tool(name: str) -> str | None:
    """The path of a JDK tool: of ``JAVA_HOME`` if it is set, else of the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(name, path=str(Path(home) / "bin") if home else None)


@dataclass(frozen=True)
class JavaProject:
    """A folder with ``pom.xml`` and ``src``; ``title`` is what people call it, ``cache`` where its builds are kept."""

    title: str
    folder: Path
    cache: Path

    def java(self) -> str:
        """The ``java`` to run; raises ``JavaUnavailable`` for none or one that is too old."""
        java = java_tool("java")
        if java is None:
            raise JavaUnavailable(f"{self.title} needs Java {OLDEST_JAVA}, and there is no java here")
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
        digits = told.partition('version "')[2].partition(".")[0].partition('"')[0]
        if not digits.isdigit() or int(digits) < OLDEST_JAVA:
            raise JavaUnavailable(f"{self.title} needs Java {OLDEST_JAVA}, here is {told.splitlines()[0] if told else 'an unknown one'}")
        return java

    def class_path(self) -> str:
        """The class path, built now if it is not in the cache; processes that ask at the same time build once.

        Raises ``JavaUnavailable``: no JDK, no Maven, or jars that are neither in the local repository nor to be had.
        """
        home = self.cache / self._made_of()
        found = _kept(home)
        if found is None:
            self.cache.mkdir(parents=True, exist_ok=True)
            with (self.cache / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                found = _kept(home)
                if found is None:
                    self._build(home)
                    found = _kept(home)
        assert found is not None
        return found

    def _made_of(self) -> str:
        """A name for what it is built from."""
        digest = hashlib.sha256()
        for path in [self.folder / "pom.xml", *self._java_files()]:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()[:20]

    def _java_files(self) -> list[Path]:
        return sorted((self.folder / "src").rglob("*.java"))

    def _build(self, home: Path) -> None:
        """Build beside ``home`` and rename: a build that is interrupted leaves nothing that looks complete."""
        javac, maven = java_tool("javac"), shutil.which("mvn")
        if javac is None:
            raise JavaUnavailable(f"building {self.title} needs a JDK, and there is no javac here")
        if maven is None:
            raise JavaUnavailable(f"building {self.title} needs Maven, and there is no mvn here")
        with tempfile.TemporaryDirectory(prefix="build-", dir=home.parent) as scratch:
            place = Path(scratch) / "made"
            place.mkdir()
            self._resolve(maven, place / "class-path")
            jars = (place / "class-path").read_text().strip()
            files = [str(path) for path in self._java_files()]
            command = [javac, "-nowarn", "-proc:none", "-encoding", "UTF-8", "-cp", jars, "-d", str(place / "classes"), *files]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{self.title} does not compile:\n{done.stderr}")
            place.rename(home)

    def _resolve(self, maven: str, target: Path) -> None:
        """Write the class path of the project; from the local repository alone if that suffices, so that no network is asked."""
        command = [maven, "-B", "-q", "-f", str(self.folder / "pom.xml"), _RESOLVE, "-DincludeScope=runtime", f"-Dmdep.outputFile={target}"]
        told = ""
        for extra in (["-o"], []):
            try:
                done = subprocess.run([*command, *extra], capture_output=True, text=True, check=False, timeout=_PATIENCE)
            except subprocess.TimeoutExpired as slow:
                raise JavaUnavailable(f"the jars of {self.title} are not at hand and Maven got none in {_PATIENCE} s") from slow
            if done.returncode == 0 and target.exists():
                return
            told = done.stdout + done.stderr
        reason = next((line for line in told.splitlines() if line.startswith("[ERROR]")), "Maven failed")
        raise JavaUnavailable(f"the jars of {self.title} are not at hand and cannot be fetched: {reason}")


def _kept(home: Path) -> str | None:
    """The class path that a build has left, if every jar of it is still there."""
    try:
        jars = (home / "class-path").read_text().strip()
    except FileNotFoundError:
        return None
    if not all(Path(jar).exists() for jar in jars.split(os.pathsep)):
        shutil.rmtree(home)
        return None
    return f"{home / 'classes'}{os.pathsep}{jars}"


__all__ = ["JavaProject", "JavaUnavailable", "java_tool"]
