"""Address of a Spark Connect server: ``sc://host:port/;token=...``.

``Address.check`` connects before Spark's client does. That client retries for minutes if no server listens.
It retries without end if it speaks TLS to a server without TLS.
Measured with Spark 4.2 and 4.3: the client uses TLS for every address with a token, except for the host name ``localhost``.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import quote, unquote, urlsplit

from paimon_base.errors import InvalidArgument
from pyspark_paimon.spark.wire.errors import SparkUnavailable

DEFAULT_PORT = 15002
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class Address:
    """Host, port and parameters of a Spark Connect server.

    ``repr`` and ``str`` omit the parameters, so they show no token.
    """

    host: str
    port: int
    parameters: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, url: str, token: str | None = None) -> Self:
        """Parse ``url`` into an address.

        ``token`` is added to the parameters, or replaces the token in ``url``. Raises ``InvalidArgument`` for a malformed URL.

        >>> print(Address.parse("sc://10.0.0.7", token="s3cret"))
        sc://10.0.0.7:15002
        """
        split = urlsplit("http" + url.removeprefix("sc"))
        path, *pairs = split.path.split(";")
        try:
            host, port = split.hostname, split.port
        except ValueError:
            host, port = None, None
        if not url.startswith("sc://") or not host or path not in {"", "/"} or not all("=" in pair for pair in pairs if pair):
            raise InvalidArgument("the address of a Spark Connect server has the form sc://host:port or sc://host:port/;name=value;...")
        parameters_by_name = {name: unquote(value) for name, _, value in (pair.partition("=") for pair in pairs if pair)}
        if token is not None:
            parameters_by_name["token"] = token
        return cls(host, port or DEFAULT_PORT, tuple(parameters_by_name.items()))

    def for_spark(self) -> str:
        """Return the URL for Spark's client, with the token.

        >>> Address.parse("sc://127.0.0.1:1", token="a/b").for_spark()
        'sc://localhost:1/;token=a%2Fb'
        """
        # With a token, Spark's client uses TLS for every host name except localhost.
        address = replace(self, host="localhost") if self.host in LOOPBACK_HOSTS and self._plain else self
        parameters = "".join(f";{name}={quote(value, safe='')}" for name, value in self.parameters)
        return f"{address}/{parameters}" if parameters else str(address)

    def check(self) -> None:
        """Raise ``SparkUnavailable`` unless the server accepts a connection.

        Also raised if the address needs TLS and the server does not speak it.
        """
        try:
            with socket.create_connection((self.host, self.port), timeout=_PATIENCE_SECONDS) as connection:
                if not self._plain:
                    _shake_hands(connection, self.host)
        except ssl.SSLError as error:
            raise SparkUnavailable(
                f"{self}: a token travels over TLS (to any host but this one), and this server does not speak it; put a proxy "
                f"with TLS before it, or reach it by a tunnel to localhost"
            ) from error
        except OSError as error:
            raise SparkUnavailable(f"{self}: no Spark Connect server answers there ({error.strerror or error})") from error

    @property
    def _plain(self) -> bool:
        names = dict(self.parameters)
        if names.get("use_ssl", "false").lower() == "true":
            return False
        return "token" not in names or self.host in LOOPBACK_HOSTS

    def __str__(self) -> str:
        return f"sc://[{self.host}]:{self.port}" if ":" in self.host else f"sc://{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"Address({self})"


def _shake_hands(connection: socket.socket, host: str) -> None:
    """Raise ``ssl.SSLError`` unless the server speaks TLS."""
    context = ssl.create_default_context()
    # Spark's client verifies the certificate when it connects.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(connection, server_hostname=host):
        pass
