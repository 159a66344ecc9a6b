"""Where the engine process is built: once for what it is made of, in the user's cache."""

from __future__ import annotations

from pathlib import Path

from benchmarks.environments import cache
from benchmarks.java_project import JavaProject
from benchmarks.java_project import JavaUnavailable as EngineUnavailable

ENGINE = JavaProject("the Paimon engine", Path(__file__).parent / "engine", cache() / "interop-engine")

__all__ = ["ENGINE", "EngineUnavailable"]
