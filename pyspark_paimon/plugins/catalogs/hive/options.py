"""Options of a Hive catalog, by Paimon's names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from manifest.options.catalog_options import POOL, SYNC
from manifest.options.durations import parse_duration_millis
from manifest.options.option_reader import OptionReader
from paimon_base.errors import InvalidArgument, UnsupportedOption

_URI, _CONF_DIR, _IN_PROPERTIES = "uri", "hive-conf-dir", "location-in-properties"
_CASCADE, _SKIP_STATS, _TYPE = "alter-table-cascade", "hive.skip-update-stats", "table.type"
_SITE_URIS, _SITE_SASL, _SITE_SSL, _TIMEOUT = (
    "hive.metastore.uris",
    "hive.metastore.sasl.enabled",
    "hive.metastore.use.SSL",
    "hive.metastore.client.socket.timeout",
)
_FRAMED: Final = "hive.metastore.thrift.framed.transport.enabled"
_REFUSED: Final = {
    "metastore.client.class": "classes of Java are not used",
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
    def of(cls, catalog_options: Mapping[str, Any]) -> tuple[HiveOptions, dict[str, Any]]:
        """Return the options of the metastore, and the remaining ones.

        Raises ``InvalidArgument`` for a missing option or a value, ``UnsupportedOption`` for one without a meaning here.

        >>> options, rest = HiveOptions.of({"uri": "thrift://a:9083,thrift://b:9083", "s3.region": "eu"})
        >>> options.addresses, options.sync_properties, rest
        ((('a', 9083), ('b', 9083)), True, {'s3.region': 'eu'})
        """
        reader = OptionReader(catalog_options)
        reader.refuse(_REFUSED)
        site = OptionReader(_site(reader.rest.pop(_CONF_DIR, None)))
        site.rest |= {name: reader.text(name) for name in (_SITE_URIS, _SITE_SASL, _SITE_SSL, _TIMEOUT, _FRAMED) if name in catalog_options}
        for name, what in ((_SITE_SASL, "Kerberos (SASL)"), (_SITE_SSL, "TLS"), (_FRAMED, "framed messages")):
            if site.flag(name, default=False):
                raise UnsupportedOption(name, f"connections to the metastore by {what} are not supported")
        uri = reader.text(_URI, site.text(_SITE_URIS)).strip()
        if not uri.strip(", "):
            raise InvalidArgument(
                f"a Hive catalog needs option '{_URI}', or '{_SITE_URIS}' in the hive-site.xml of '{_CONF_DIR}': {_EXAMPLE}"
            )
        reader.number(POOL, 1)  # without effect: each call has its own connection
        seconds = site.text(_TIMEOUT, _DEFAULT_TIMEOUT)
        hive_options = cls(
            tuple(_address(address.strip()) for address in uri.split(",") if address.strip()),
            parse_duration_millis(f"{seconds}s" if seconds.isdecimal() else seconds, _TIMEOUT) / 1000,
            sync_properties=reader.flag(SYNC, default=True),
            location_in_properties=reader.flag(_IN_PROPERTIES, default=False),
            external=reader.choice(_TYPE, ("managed", "external")) == "external",
            cascade=reader.flag(_CASCADE, default=True),
            skip_statistics=reader.flag(_SKIP_STATS, default=False),
        )
        return hive_options, reader.rest


def _address(uri: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(uri)
    if match is None or not 0 < int(match[2]) < 1 << 16:
        raise InvalidArgument(f"option '{_URI}' must be 'thrift://host:port', or several of them with commas, not '{uri}'")
    return match[1].strip("[]"), int(match[2])


def _site(directory: object) -> dict[str, str]:
    """Return the properties of hive-site.xml, if there is one."""
    conf_dir = directory or os.environ.get("HIVE_CONF_DIR")
    if not conf_dir:
        return {}
    file = Path(str(conf_dir)) / "hive-site.xml"
    try:
        root = ET.parse(file).getroot()  # noqa: S314  # a file of this machine's administrator
    except FileNotFoundError:
        if directory is None:
            return {}
        raise InvalidArgument(f"option '{_CONF_DIR}': there is no {file}") from None
    except (OSError, ET.ParseError) as error:
        raise InvalidArgument(f"{file} cannot be read ({error})") from None
    pairs = ((element.findtext("name"), element.findtext("value")) for element in root.iter("property"))
    return {name.strip(): value.strip() for name, value in pairs if name and value and value.strip()}
