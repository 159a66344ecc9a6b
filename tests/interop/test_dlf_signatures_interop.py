"""Our signatures of DLF beside those of Paimon's own classes."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.environments import cache
from benchmarks.java_project import JavaProject, JavaUnavailable
from pyspark_paimon.plugins.catalogs.rest.dlf import DlfKeys, Signed, default_headers, openapi_headers

pytestmark = pytest.mark.interop

PROJECT = JavaProject("Paimon's signatures of DLF", Path(__file__).parent / "dlf_signatures", cache() / "interop-dlf-signatures")
SECONDS = 1_764_000_000
REQUESTS = {
    "get": ("GET", "/v1/lake/databases", "", {}),
    "parameters": ("GET", "/v1/lake/databases/a%24b/tables", "", {"maxResults": "10", "pageToken": "a b/~*-_.é", "empty": ""}),
    "post": ("POST", "/v1/lake/databases", '{"name":"é"}', {}),
    "delete": ("DELETE", "/v1/lake/databases/x+y", "", {}),
}


@pytest.fixture(scope="module")
def command() -> list[str]:
    try:
        return [PROJECT.java(), "-Xmx128m", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", "-cp", PROJECT.class_path(), "interop.Dlf"]
    except JavaUnavailable as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("token", ["", "a-token"], ids=["key", "token"])
@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("algorithm", ["default", "openapi"])
def test_headers_are_those_of_java(command, algorithm, name, token) -> None:
    method, path, body, parameters = REQUESTS[name]
    words = [algorithm, "cn-hangzhou", "dlf.example.com:8080", "key", "secret", token, str(SECONDS), method, path, body]
    told = subprocess.run(
        [*command, *words, *(f"{key}={value}" for key, value in parameters.items())], capture_output=True, text=True, check=True
    )
    java = dict(line.split(": ", 1) for line in told.stdout.splitlines())
    keys = DlfKeys("key", "secret", token or None)
    request = Signed(method, path, parameters, body.encode(), datetime.fromtimestamp(SECONDS, UTC))
    if algorithm == "openapi":
        assert openapi_headers(keys, "dlf.example.com:8080", request, java["x-acs-signature-nonce"]) == java
    else:
        assert default_headers(keys, "cn-hangzhou", request) == java
