"""Memory of the machine, or of the container that this process runs in."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_CGROUP = "/proc/self/cgroup"
_MOUNT = "/sys/fs/cgroup"


def machine_memory() -> int:
    """Return the bytes of memory that this process may use.

    The limits of its control groups (Linux) count. 0: unknown.
    """
    limits = control_group_limits(Path(_CGROUP), Path(_MOUNT))
    with suppress(AttributeError, ValueError, OSError):  # no such name on this platform
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((limit for limit in limits if limit > 0), default=0)


def control_group_limits(groups: Path, mount: Path) -> list[int]:
    """Return the memory limits of control groups, of both versions.

    Args:
        groups: File with a line ``number:controllers:path`` for each group of the process.
        mount: Folder of the control groups.
    """
    limits: list[int] = []
    with suppress(OSError):
        for line in groups.read_text().splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if controllers == "":
                top, name = mount, "memory.max"
            elif "memory" in controllers.split(","):
                top, name = mount / "memory", "memory.limit_in_bytes"
            else:
                continue
            # A limit applies to all groups below. In a container the path may be one of the host, and only the top exists.
            folder = top / path.lstrip("/")
            for each in (folder, *folder.parents):
                with suppress(OSError, ValueError):  # "max": no limit
                    limits.append(int((each / name).read_text()))
                if each == top:
                    break
    return limits
