"""The package's version and where it was imported from, for modules that must not import the package's ``__init__``."""

from __future__ import annotations

from pathlib import PurePath

__version__ = "0.1.0"

HOME = PurePath(__file__).parent.parent
"""The directory, or the zip, that holds our packages."""

__all__ = ["HOME", "__version__"]
