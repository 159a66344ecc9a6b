"""Options of a Hive catalog, by Paimon's names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from fileindex.base.errors import InvalidArgument, UnsupportedOption
from manifest.options.durations import parse_duration_millis

_URI, _CONF_DIR, _SYNC, _IN_PROPERTIES = "uri", "hive-conf-dir", "sync-all-properties", "location-in-properties"
_CASCADE, _SKIP_STATS, _POOL, _TYPE = "alter-table-cascade", "hive.skip-update-stats", "client-pool-size", "table.type"
_SITE_URIS, _SITE_SASL, _SITE_SSL, _TIMEOUT = (
    "hive.metastore.uris",
    "hive.metastore.sasl.enabled",
    "hive.metastore.use.SSL",
    "hive.metastore.client.socket.timeout",
)
_FRAMED: Final = "hive.metastore.thrift.framed.transport.enabled"
_REFUSED: Final = {
    "metastore.client.class": "classes of Java are not used",
    "client-pool-cache.eviction-interval-ms": "no connections are held",
    "client-pool-cache.keys": "no connections are held",
}
_ADDRESS: Final = re.compile(r"(?:thrift://)?(\[[^\]]+\]|[^:/@\s]+):(\d{1,5})/?")
_EXAMPLE: Final = "{'metastore': 'hive', 'uri': 'thrift://host:9083', 'warehouse': '/path', ...}"
_DEFAULT_TIMEOUT: Final = "600s"


@dataclass(frozen=True)
class HiveOptions:
    """Addresses of the metastore, and what the catalog writes there.

    location_in_properties: Whether locations are properties, so that the metastore itself does not touch the storage.
    cascade: Whether changes of columns reach the partitions that the metastore knows.
    """

    addresses: tuple[tuple[str, int], ...]
    timeout_seconds: float = 600.0
    sync_properties: bool = True
    location_in_properties: bool = False
    external: bool = False
    cascade: bool = True
    skip_statistics: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> tuple[HiveOptions, dict[str, Any]]:
        """Return the options of the metastore, and the remaining ones.

        Raises ``InvalidArgument`` for a missing option or a value, ``UnsupportedOption`` for one without a meaning here.

        >>> options, rest = HiveOptions.of({"uri": "thrift://a:9083,thrift://b:9083", "s3.region": "eu"})
        >>> options.addresses, options.sync_properties, rest
        ((('a', 9083), ('b', 9083)), True, {'s3.region': 'eu'})
        """
        rest = dict(given)
        for name, reason in _REFUSED.items():
            if name in rest:
                raise UnsupportedOption(name, reason)
        site = _site(rest.pop(_CONF_DIR, None))
        for name in (_SITE_URIS, _SITE_SASL, _SITE_SSL, _TIMEOUT, _FRAMED):
            if name in rest:
                site[name] = str(rest.pop(name))
        for name, what in ((_SITE_SASL, "Kerberos (SASL)"), (_SITE_SSL, "TLS"), (_FRAMED, "framed messages")):
            if site.get(name, "false").strip().lower() == "true":
                raise UnsupportedOption(name, f"connections to the metastore by {what} are not supported")
        uri = str(rest.pop(_URI, site.get(_SITE_URIS, ""))).strip()
        if not uri.strip(", "):
            raise InvalidArgument(
                f"a Hive catalog needs option '{_URI}', or '{_SITE_URIS}' in the hive-site.xml of '{_CONF_DIR}': {_EXAMPLE}"
            )
        pool = str(rest.pop(_POOL, "1"))  # without effect: each call has its own connection
        if not pool.isdecimal() or int(pool) == 0:
            raise InvalidArgument(f"option '{_POOL}' must be a number from 1 up, not '{pool}'")
        kind = str(rest.pop(_TYPE, "managed")).lower()
        if kind not in {"managed", "external"}:
            raise InvalidArgument(f"option '{_TYPE}' must be 'managed' or 'external', not '{kind}'")
        seconds = site.get(_TIMEOUT, _DEFAULT_TIMEOUT)
        return (
            cls(
                tuple(_address(one.strip()) for one in uri.split(",") if one.strip()),
                parse_duration_millis(f"{seconds}s" if seconds.isdecimal() else seconds, _TIMEOUT) / 1000,
                sync_properties=_flag(rest, _SYNC, default=True),
                location_in_properties=_flag(rest, _IN_PROPERTIES, default=False),
                external=kind == "external",
                cascade=_flag(rest, _CASCADE, default=True),
                skip_statistics=_flag(rest, _SKIP_STATS, default=False),
            ),
            rest,
        )


def _flag(rest: dict[str, Any], name: str, *, default: bool) -> bool:
    value = str(rest.pop(name, default)).strip().lower()
    if value not in {"true", "false"}:
        raise InvalidArgument(f"option '{name}' must be 'true' or 'false', not '{value}'")
    return value == "true"


def _address(uri: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(uri)
    if found is None or not 0 < int(found[2]) < 1 << 16:
        raise InvalidArgument(f"option '{_URI}' must be 'thrift://host:port', or several of them with commas, not '{uri}'")
    return found[1].strip("[]"), int(found[2])


def _site(directory: object) -> dict[str, str]:
    """Return the properties of hive-site.xml, if there is one."""
    given = directory or os.environ.get("HIVE_CONF_DIR")
    if not given:
        return {}
    file = Path(str(given)) / "hive-site.xml"
    try:
        found = ET.parse(file).getroot()  # noqa: S314  # a file of this machine's administrator
    except FileNotFoundError:
        if directory is None:
            return {}
        raise InvalidArgument(f"option '{_CONF_DIR}': there is no {file}") from None
    except (OSError, ET.ParseError) as error:
        raise InvalidArgument(f"{file} cannot be read ({error})") from None
    pairs = ((one.findtext("name"), one.findtext("value")) for one in found.iter("property"))
    return {name.strip(): (value or "").strip() for name, value in pairs if name}


__all__ = ["HiveOptions"]
