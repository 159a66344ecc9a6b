"""Check that no module shadows a package of this distribution.

Some packages have short names.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import PurePath

PACKAGES = ("sparkexpr", "paimon_base", "fileindex", "manifest", "lsm", "pyspark_paimon")


def check_siblings(init_file: str) -> None:
    """Raise ImportError if one of the packages is unavailable.

    It is missing, or another module shadows it. All packages must be in the folder of ``init_file``, the ``__init__`` file of one.
    The error names the file that Python found instead, and a remedy.
    """
    home = PurePath(init_file).parent.parent
    for name in PACKAGES:
        spec = find_spec(name)
        origin = None if spec is None else spec.origin
        if origin is None:
            raise ImportError(
                f"pyspark-paimon needs its package '{name}' in {home}, but it is missing: reinstall pyspark-paimon", name=name
            )
        if PurePath(origin).parent != home / name:
            raise ImportError(
                f"{origin} shadows the package '{name}' of pyspark-paimon: rename that file or folder if it is yours (or run from another "
                "directory); if another distribution brought it, install pyspark-paimon into a separate environment",
                name=name,
            )
