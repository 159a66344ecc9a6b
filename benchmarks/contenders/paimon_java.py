"""Paimon's Java core: the program in ``benchmarks/java``, two writers, binary rows on its heap as inputs, rows as answers."""

from __future__ import annotations

from pathlib import Path

from benchmarks.contenders.worker import Contender, Unavailable
from benchmarks.java_project import JavaProject, JavaUnavailable

_OPENED = ("java.lang", "java.util", "java.nio", "sun.nio.ch")
_FLAGS = ("-Xmx8g", "-XX:+UseG1GC", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8")


def made(cache: Path) -> list[str]:
    """The command line in front of the job; raises ``Unavailable`` without Java 17, Maven or the jars."""
    project = JavaProject("Paimon's Java core", Path(__file__).parents[1] / "java", cache / "java-core")
    try:
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        return [project.java(), *_FLAGS, *opened, "-cp", project.class_path(), "bench.Main"]
    except JavaUnavailable as missing:
        raise Unavailable(str(missing)) from missing


CONTENDER = Contender(
    "Paimon Java core 1.4.2",
    paimon=True,
    command=made,
    note="two writer threads, -Xmx8g, G1; reads fetch every column of every row and build no Arrow; lookups and plans after a warm-up of the JVM",
)

__all__ = ["CONTENDER", "made"]
