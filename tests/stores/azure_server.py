"""A real server of Azure's blob protocol for tests: Azurite, which npm brings, on 127.0.0.1 and files of its own, for as long as it is held."""

from __future__ import annotations

import base64
import email.utils
import fcntl
import hashlib
import hmac
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from benchmarks.environments import cache
from tests.stores.local_server import LocalServer, ServerUnavailable, free_port

VERSION = "3.35.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Those that every Azurite has: no secret of anybody."""
CONTAINER = "tests"
_PATIENCE_SECONDS = 60


class AzureServer(LocalServer):
    """A running server with a container named ``tests``."""

    name = "Azurite"

    def __enter__(self) -> Self:
        program = _program()
        self._make_folder("azure")
        self.port = free_port()
        places = ["--location", str(self.folder / "data"), "--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        command = [str(shutil.which("node")), str(program), "--skipApiVersionCheck", "--silent", *places]
        self._run(command)
        if not self._answers_within(_PATIENCE_SECONDS, self._make_container):
            self._give_up()
        return self

    def _make_container(self) -> bool:
        try:
            urllib.request.urlopen(self._creation(), timeout=5).close()
        except urllib.error.HTTPError as error:
            raise ServerUnavailable(f"Azurite makes no container: {error} {error.read()[:300]!r}") from None
        return True

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
    """The server's program, brought once for this user. Raises ``ServerUnavailable``."""
    home = cache() / f"azurite-{VERSION}"
    found = home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if found.exists():
            return found
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise ServerUnavailable("there is no Node.js with npm here, which brings Azurite")
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(home), f"azurite@{VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if not found.exists():
            raise ServerUnavailable(f"npm does not bring azurite {VERSION}: {done.stderr[-300:]}")
        return found


__all__ = ["CONTAINER", "AzureServer"]
