"""Jars by which Spark's own readers reach S3: Hadoop's file system, of the version that pyspark brings, and the vendor's client, by Maven."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pyspark

from benchmarks.java_project import JavaUnavailable

_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>hadoop-jars</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId><version>{version}</version></dependency></dependencies></project>
"""
_PATIENCE = 900


def hadoop_jars() -> list[Path]:
    """In Maven's own repository, some 600 MB, brought once. Raises ``JavaUnavailable``."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaUnavailable("hadoop-aws needs Maven")
    (found,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    with tempfile.TemporaryDirectory() as scratch:
        project, target = Path(scratch, "pom.xml"), Path(scratch, "class-path")
        project.write_text(_PROJECT.format(version=found.stem.rpartition("-")[2]))
        command = [
            maven,
            "-B",
            "-q",
            "-f",
            str(project),
            "dependency:build-classpath",
            "-DincludeScope=runtime",
            f"-Dmdep.outputFile={target}",
        ]
        told = ""
        for extra in (["-o"], []):
            done = subprocess.run([*command, *extra], capture_output=True, text=True, check=False, timeout=_PATIENCE)
            told = done.stdout + done.stderr
            if done.returncode == 0 and target.exists():
                return [Path(jar) for jar in target.read_text().strip().split(os.pathsep)]
    raise JavaUnavailable(f"hadoop-aws is not at hand and cannot be fetched: {told[-300:]}")


__all__ = ["hadoop_jars"]
