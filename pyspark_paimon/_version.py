"""Version and location of the package.

Modules that must not import the package's ``__init__`` import this.
"""

from __future__ import annotations

from pathlib import PurePath

__version__ = "0.1.0"

HOME = PurePath(__file__).parent.parent
"""The directory, or the zip, that holds our packages."""
