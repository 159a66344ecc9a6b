"""A real server of Azure's blob protocol for tests: Azurite, which npm brings, on 127.0.0.1 and files of its own, for as long as it is held."""

from __future__ import annotations

import base64
import email.utils
import fcntl
import hashlib
import hmac
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from benchmarks.environments import cache
from tests.stores.s3_server import free_port

VERSION = "3.35.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Those that every Azurite has: no secret of anybody."""
CONTAINER = "tests"
_PATIENCE_SECONDS = 60


class AzuriteUnavailable(Exception):  # a reason to skip, not an error
    """There is no Node, or npm does not bring the server."""


@dataclass
class AzureServer:
    """A running server with a container named ``tests``."""

    port: int = 0
    folder: Path = Path()
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        program = _program()
        self.folder = Path(tempfile.mkdtemp(prefix="paimon-azure-"))
        self.port = free_port()
        places = ["--location", str(self.folder / "data"), "--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        command = [str(shutil.which("node")), str(program), "--skipApiVersionCheck", "--silent", *places]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        self._make_container()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make_container(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            try:
                urllib.request.urlopen(self._creation(), timeout=5).close()
            except urllib.error.HTTPError as error:
                raise AzuriteUnavailable(f"Azurite makes no container: {error} {error.read()[:300]!r}") from None
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise AzuriteUnavailable(f"Azurite did not start: {(self.folder / 'log').read_text()[-500:]}")

    def _creation(self) -> urllib.request.Request:
        """The request for a container, signed as Azure's reference of "Shared Key" says; an emulator has the account in its path."""
        headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
        lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in sorted(headers.items()))]
        told = "\n".join([*lines, f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}", "restype:container"])
        signature = base64.b64encode(hmac.new(base64.b64decode(KEY), told.encode(), hashlib.sha256).digest()).decode()
        headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}"}
        url = f"http://127.0.0.1:{self.port}/{ACCOUNT}/{CONTAINER}?restype=container"
        return urllib.request.Request(url, method="PUT", headers=headers)

    def options(self, port: int | None = None) -> dict[str, str]:
        """``storage_options`` that reach it, or the proxy on ``port``."""
        return {
            "azure.account-name": ACCOUNT,
            "azure.account-key": KEY,
            "azure.endpoint": f"http://127.0.0.1:{port or self.port}/{ACCOUNT}",
        }

    def environment(self) -> dict[str, str]:
        """Variables by which a process reaches it without being told."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{self.port}/{ACCOUNT}",
        }


def _program() -> Path:
    """The server's program, brought once for this user. Raises ``AzuriteUnavailable``."""
    home = cache() / f"azurite-{VERSION}"
    found = home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if found.exists():
            return found
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise AzuriteUnavailable("there is no Node.js with npm here, which brings Azurite")
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(home), f"azurite@{VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if not found.exists():
            raise AzuriteUnavailable(f"npm does not bring azurite {VERSION}: {done.stderr[-300:]}")
        return found


__all__ = ["CONTAINER", "AzureServer", "AzuriteUnavailable"]
