"""The four packages of this distribution have short names; this finds out if another distribution's package stands in for one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import PurePath

DISTRIBUTION = "pyspark-paimon"
PACKAGES = ("fileindex", "manifest", "lsm", "pyspark_paimon")


def check_siblings(init_file: str) -> None:
    """Raise ImportError unless all of our packages stand beside the one whose ``__init__`` file is ``init_file``."""
    home = PurePath(init_file).parent.parent
    for name in PACKAGES:
        spec = find_spec(name)
        origin = None if spec is None else spec.origin
        if origin is None or PurePath(origin).parent.parent != home:
            raise ImportError(
                f"{DISTRIBUTION} needs its own package '{name}' in {home}, but Python finds {origin or 'none'}: "
                f"another distribution shadows it; remove that one, or install {DISTRIBUTION} into an environment of its own",
                name=name,
            )


__all__ = ["PACKAGES", "check_siblings"]
