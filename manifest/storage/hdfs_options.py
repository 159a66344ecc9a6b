"""Options of HDFS, by the names of Hadoop and Paimon."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from manifest.storage.schemes import ObjectPlace
from paimon_base.errors import InvalidArgument, UnsupportedOption

CONF_DIR: Final = "hadoop-conf-dir"
_UMASK, _REPLICATION, _BLOCK_SIZE = "fs.permissions.umask-mode", "dfs.replication", "dfs.blocksize"
_HADOOP: Final = "hadoop."
"""Prefix of Hadoop's options in those of Paimon's catalogs."""
PREFIXES: Final = ("dfs.", _HADOOP, "fs.viewfs.", "fs.permissions.", "fs.defaultfs", CONF_DIR)
_PASSED: Final = frozenset(
    {
        "fs.defaultFS",
        "hadoop.security.authentication",
        "dfs.client.use.datanode.hostname",
        "dfs.data.transfer.protection",
        "dfs.client.block.write.replace-datanode-on-failure.enable",
        "dfs.client.block.write.replace-datanode-on-failure.policy",
        "dfs.client.block.write.replace-datanode-on-failure.best-effort",
    }
)
"""Options that the client library reads. It ignores all others without a word."""
_FAMILIES: Final = (
    "dfs.ha.namenodes.",
    "dfs.namenode.rpc-address.",
    "dfs.client.failover.proxy.provider.",
    "dfs.client.failover.random.order.",
    "dfs.client.failover.resolve-needed.",
    "dfs.client.failover.resolver.useFQDN.",
    "fs.viewfs.mounttable.",
)
_OURS: Final = frozenset({CONF_DIR, _UMASK, _REPLICATION, _BLOCK_SIZE, "dfs.nameservices"})
_PROVIDER: Final = "dfs.client.failover.proxy.provider."
_ACTIVE_ONLY: Final = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_SIZE: Final = re.compile(r"(\d+)([kmgtKMGT]?)")
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def hdfs_name(name: str) -> str | None:
    """Return Hadoop's name of an option, None for an option of another storage.

    Raises ``UnsupportedOption`` for an option of Hadoop that has no effect here.

    >>> hdfs_name("hadoop.dfs.replication"), hdfs_name("hadoop.security.authentication"), hdfs_name("s3.region")
    ('dfs.replication', 'hadoop.security.authentication', None)
    """
    if not name.lower().startswith(PREFIXES):
        return None
    for spelled in (name, name.removeprefix(_HADOOP)):
        if spelled in _PASSED | _OURS or spelled.startswith(_FAMILIES):
            return spelled
    supported = ", ".join(sorted(_PASSED | _OURS))
    raise UnsupportedOption(name, f"is an option of Hadoop without effect here; options are {supported}, and {', '.join(_FAMILIES)}*")


@dataclass(frozen=True)
class HdfsOptions:
    """Parsed options.

    conf_dir: Directory of ``core-site.xml`` and ``hdfs-site.xml``. None: that of the environment.
    umask: Permissions that new files and directories lack.
    replication, block_size: Of new files. None: the name node's.
    """

    conf_dir: str | None = None
    umask: int = 0o022
    replication: int | None = None
    block_size: int | None = None
    passed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> HdfsOptions:
        """Parse options by Hadoop's names. Raises ``InvalidArgument``.

        >>> HdfsOptions.of({"fs.permissions.umask-mode": "002", "dfs.blocksize": "64m"})
        HdfsOptions(conf_dir=None, umask=2, replication=None, block_size=67108864, passed={})
        """
        umask, replication, block = options.get(_UMASK, "022"), options.get(_REPLICATION), options.get(_BLOCK_SIZE)
        if not re.fullmatch("[0-7]{3,4}", umask):
            raise InvalidArgument(f"storage_options: '{_UMASK}' must be an octal number such as '022', not '{umask}'")
        if replication is not None and (not replication.isdecimal() or not 0 < int(replication) <= 512):
            raise InvalidArgument(f"storage_options: '{_REPLICATION}' must be a number from 1 to 512, not '{replication}'")
        size = None if block is None else _SIZE.fullmatch(block)
        if block is not None and (size is None or int(size[1]) == 0):
            raise InvalidArgument(f"storage_options: '{_BLOCK_SIZE}' must be a size such as '134217728' or '128m', not '{block}'")
        return cls(
            options.get(CONF_DIR),
            int(umask, 8) & 0o777,
            None if replication is None else int(replication),
            None if size is None else int(size[1]) * _UNITS[size[2].lower()],
            {name: value for name, value in options.items() if name not in _OURS},
        )

    @property
    def file_permission(self) -> int:
        """Permission of new files."""
        return 0o666 & ~self.umask

    @property
    def directory_permission(self) -> int:
        """Permission of new directories."""
        return 0o777 & ~self.umask

    def config(self, location: ObjectPlace) -> dict[str, str]:
        """Return the client library's configuration for a place."""
        # An observer may answer from an older state. Commits need to see what other processes wrote.
        name, port = location.bucket.partition(":")[::2]
        return {**self.passed, **({f"{_PROVIDER}{name}": _ACTIVE_ONLY} if name and not port else {})}
