"""Paimon's own server of a REST catalog (of its tests, ``RESTCatalogServer``), as a process."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.environments import cache
from benchmarks.java_project import JavaProject, JavaUnavailable

SERVER = JavaProject("Paimon's REST server", Path(__file__).parent / "rest_server", cache() / "interop-rest-server")
TOKEN, WAREHOUSE = "a-token-for-java", "main"
_PATIENCE = 120
_OPENED = ("java.lang", "java.util", "java.nio", "sun.nio.ch")


@dataclass
class RestServer:
    """Serves ``folder`` while it is held."""

    folder: Path
    uri: str = ""
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)
    _log: Any = field(default=None, repr=False)

    def __enter__(self) -> Self:
        """Raises ``JavaUnavailable`` where it cannot run."""
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        command = [SERVER.java(), "-Xmx512m", "-XX:+UseSerialGC", *opened, "-cp", SERVER.class_path(), "interop.RestServer"]
        self._log = tempfile.TemporaryFile()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [*command, str(self.folder), WAREHOUSE, TOKEN],
            stdin=pipe,
            stdout=pipe,
            stderr=self._log,
            text=True,
            env={**os.environ, "TZ": "UTC"},
        )
        self.uri = self._line()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.stdin is not None and self._process.stdout is not None:
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process.stdout.close()
        self._log.close()

    def say(self, *words: str) -> None:
        """Have it do a command of ``RestServer.java``."""
        assert self.ask(*words) == "done"

    def ask(self, *words: str) -> str:
        """The answer to a command of ``RestServer.java``."""
        assert self._process is not None
        assert self._process.stdin is not None
        print(*words, file=self._process.stdin, flush=True)
        return self._line()

    def options(self, **more: str) -> dict[str, str]:
        """As a client gives them."""
        return {"metastore": "rest", "uri": self.uri, "warehouse": WAREHOUSE, "token.provider": "bear", "token": TOKEN, **more}

    def _line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _PATIENCE)
        line = self._process.stdout.readline().strip() if ready else ""
        if not line:
            self._log.seek(0)
            raise JavaUnavailable(f"{SERVER.title} did not answer: {self._log.read()[-2000:].decode(errors='replace')}")
        return line


__all__ = ["RestServer"]
