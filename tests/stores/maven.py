"""Class paths of what Maven brings: in its own repository, resolved once for a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from benchmarks.java_project import JavaUnavailable

_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>class-path</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>
"""
_PATIENCE = 900


@lru_cache
def class_path(*artifacts: str, without: tuple[str, ...] = ()) -> tuple[Path, ...]:
    """The jars of ``group:name:version`` and what they need at run time, but for ``without`` (``group:name``). Raises ``JavaUnavailable``."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaUnavailable(f"{artifacts[0]} needs Maven")
    left_out = "".join("<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>".format(*one.split(":")) for one in without)
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><exclusions>{}</exclusions></dependency>".format(
            *artifact.split(":"), left_out
        )
        for artifact in artifacts
    )
    with tempfile.TemporaryDirectory() as scratch:
        project, target = Path(scratch, "pom.xml"), Path(scratch, "class-path")
        project.write_text(_PROJECT.format(dependencies=dependencies))
        scope = ["-DincludeScope=runtime", f"-Dmdep.outputFile={target}"]
        command = [maven, "-B", "-q", "-f", str(project), "dependency:build-classpath", *scope]
        told = ""
        for extra in (["-o"], []):
            done = subprocess.run([*command, *extra], capture_output=True, text=True, check=False, timeout=_PATIENCE)
            told = done.stdout + done.stderr
            if done.returncode == 0 and target.exists():
                return tuple(Path(jar) for jar in target.read_text().strip().split(os.pathsep))
    raise JavaUnavailable(f"{artifacts[0]} is not at hand and cannot be fetched: {told[-300:]}")


__all__ = ["class_path"]
