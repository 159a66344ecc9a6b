"""CPU seconds of each test, and the Java processes that it starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import PurePath

LIMIT_SECONDS = 1.0
"""A quick test uses less CPU than this."""


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def is_java(executable: object, arguments: object) -> bool:
    """Tell whether a command starts a JVM, by its first words.

    >>> is_java("/usr/bin/java", ["/usr/bin/java", "-version"]), is_java(None, ["nice", "java", "-jar"]), is_java("python", ["python"])
    (True, True, False)
    """
    words = [executable, *(arguments[:3] if isinstance(arguments, Sequence) and not isinstance(arguments, str | bytes) else ())]
    names = {PurePath(os.fsdecode(word)).name for word in words if isinstance(word, str | bytes | os.PathLike)}
    return bool(names & {"java", "mvn", "spark-submit"})


class JavaStarts:
    """Counts the JVMs that this process starts, from the day it is made: hooks of the interpreter cannot be removed."""

    def __init__(self) -> None:
        self.count = 0
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "subprocess.Popen" and is_java(arguments[0], arguments[1]):
            self.count += 1
