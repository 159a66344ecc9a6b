"""Where the engine process is built: once for what it is made of, in the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.java_project import JavaProject
from benchmarks.java_project import JavaUnavailable as EngineUnavailable

_CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

ENGINE = JavaProject("the Paimon engine", Path(__file__).parent / "engine", _CACHES / "pyspark-paimon" / "interop-engine")

__all__ = ["ENGINE", "EngineUnavailable"]
