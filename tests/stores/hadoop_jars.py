"""Jars by which Spark's own readers reach S3: Hadoop's file system, of the version that pyspark brings, and the vendor's client, by Maven."""

from __future__ import annotations

from pathlib import Path

import pyspark

from tests.stores.maven import class_path


def hadoop_version() -> str:
    """Of the Hadoop client that pyspark brings."""
    (found,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    return found.stem.rpartition("-")[2]


def hadoop_jars() -> list[Path]:
    """In Maven's own repository, some 600 MB, brought once. Raises ``JavaUnavailable``."""
    return list(class_path(f"org.apache.hadoop:hadoop-aws:{hadoop_version()}"))


__all__ = ["hadoop_jars", "hadoop_version"]
