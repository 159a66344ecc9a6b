"""Another real S3 server for tests: versitygw, which Go builds from its module, on 127.0.0.1 and files of its own."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from benchmarks.environments import cache
from tests.stores.local_server import ServerUnavailable
from tests.stores.s3_server import IDENTITY, SECRET, S3Server

VERSION = "1.8.0"
_PATIENCE = 1200


class VersityServer(S3Server):
    """As ``S3Server``; objects are files below ``folder``, what else is known of them lies beside."""

    name = "versitygw"

    def _command(self) -> list[str]:
        data, aside = self.folder / "data", self.folder / "aside"
        aside.mkdir(exist_ok=True)
        server = ["--access", IDENTITY, "--secret", SECRET, "--port", f"127.0.0.1:{self.port}", "--quiet"]
        return [str(_program()), *server, "posix", "--sidecar", str(aside), str(data)]


def _program() -> Path:
    """The server's program, built once for this user, which takes some minutes. Raises ``ServerUnavailable``."""
    home = cache() / f"versitygw-{VERSION}"
    found = home / "versitygw"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if found.exists():
            return found
        go = shutil.which("go")
        if go is None:
            raise ServerUnavailable("there is no Go here, which builds versitygw")
        module = f"github.com/versity/versitygw/cmd/versitygw@v{VERSION}"
        done = subprocess.run(
            [go, "install", module], env=os.environ | {"GOBIN": str(home)}, capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
        if not found.exists():
            raise ServerUnavailable(f"Go does not bring versitygw {VERSION}: {done.stderr[-300:]}")
        return found


__all__ = ["VersityServer"]
