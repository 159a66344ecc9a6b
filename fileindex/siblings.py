"""The four packages of this distribution have short names: a check that no other module or distribution shadows one of them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import PurePath

PACKAGES = ("fileindex", "manifest", "lsm", "pyspark_paimon")


def check_siblings(init_file: str) -> None:
    """Raise ImportError unless all of our packages stand beside the one whose ``__init__`` file is ``init_file``.

    The error names the file that Python found instead, and the way out.
    """
    home = PurePath(init_file).parent.parent
    for name in PACKAGES:
        spec = find_spec(name)
        origin = None if spec is None else spec.origin
        if origin is None:
            raise ImportError(
                f"pyspark-paimon needs its package '{name}' in {home}, and it is not there: install pyspark-paimon anew", name=name
            )
        if PurePath(origin).parent != home / name:
            raise ImportError(
                f"{origin} shadows the package '{name}' of pyspark-paimon: rename that file or folder if it is yours (or run from another "
                "directory); if another distribution brought it, install pyspark-paimon into an environment of its own",
                name=name,
            )


__all__ = ["PACKAGES", "check_siblings"]
