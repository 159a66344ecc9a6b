"""Signatures of DLF: those of Java, keys that are loaded, what a server that checks them answers, and secrets that stay hidden."""

from __future__ import annotations

import json
import pickle
import socket
import threading
import traceback
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from manifest.io.catalog_errors import NotAuthorized
from paimon_base.errors import InvalidArgument, UnsupportedOption
from pyspark_paimon import Catalog
from pyspark_paimon.plugins.catalogs.rest.dlf import DlfKeys, DlfOptions, DlfSigner, Signed, default_headers, openapi_headers
from pyspark_paimon.plugins.catalogs.rest.options import RestOptions
from tests.catalogs.server import CatalogServer

KEYS = DlfKeys("key", "secret-of-dlf", "token-of-dlf")
REQUEST = Signed(
    "POST", "/v1/lake/databases/a%24b", {"pageToken": "a b/~*", "empty": ""}, b'{"name":"x"}', datetime(2025, 11, 24, 16, tzinfo=UTC)
)
JAVA_KEYS = DlfKeys("key", "secret", "a-token")
MD5 = {"Content-MD5": "XPjvtoWAtUEjboURSJmvgQ==", "Content-Type": "application/json"}


def test_the_default_signature_is_java_s() -> None:
    scope = "20251124/cn-hangzhou/DlfNext/aliyun_v4_request"
    signature = "b995c8fea0f646c55673eb0b6a1fd9c1f199dba921107b0e75565bd35d640d80"
    assert default_headers(JAVA_KEYS, "cn-hangzhou", REQUEST) == {
        **MD5,
        "Authorization": f"DLF4-HMAC-SHA256 Credential=key/{scope},Signature={signature}",
        "x-dlf-content-sha256": "UNSIGNED-PAYLOAD",
        "x-dlf-date": "20251124T160000Z",
        "x-dlf-security-token": "a-token",
        "x-dlf-version": "v1",
    }


def test_the_openapi_signature_is_java_s() -> None:
    nonce = "41591da8-d155-461e-8dcb-ad40be26f78817957145761851"
    assert openapi_headers(JAVA_KEYS, "dlf.example.com", REQUEST, nonce) == {
        **MD5,
        "Accept": "application/json",
        "Authorization": "acs key:oodihyXQfdSQKz2sOyfy3MWSfgE=",
        "Date": "Mon, 24 Nov 2025 16:00:00 GMT",
        "Host": "dlf.example.com",
        "x-acs-security-token": "a-token",
        "x-acs-signature-method": "HMAC-SHA1",
        "x-acs-signature-nonce": nonce,
        "x-acs-signature-version": "1.0",
        "x-acs-version": "2026-01-18",
    }


@pytest.fixture
def server(tmp_path):
    with CatalogServer(tmp_path / "served") as server:
        server.dlf = KEYS
        yield server


def options(server, **more):
    given = {
        "metastore": "rest",
        "uri": f"http://127.0.0.1:{server.port}",
        "warehouse": "main house",
        "token.provider": "dlf",
        "dlf.access-key-id": "key",
        "dlf.access-key-secret": "secret-of-dlf",
        "dlf.security-token": "token-of-dlf",
        "dlf.region": "cn-beijing",
    }
    return {name: value for name, value in {**given, **more}.items() if value is not None}


@pytest.mark.parametrize("algorithm", ["default", "openapi"])
def test_a_server_that_checks_signatures_serves_a_catalog(server, algorithm) -> None:
    catalog = Catalog.create(options(server, **{"dlf.signing-algorithm": algorithm}))
    catalog.create_database("sales", ignore_if_exists=True)
    table = catalog.create_table("sales.t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
    table.write({"id": [1], "v": ["a"]})
    assert (catalog.list_tables("sales"), pickle.loads(pickle.dumps(catalog)).table("sales.t").count()) == (["t"], 1)
    catalog.drop_table("sales.t")
    signed = {headers["authorization"].partition(" ")[0] for _, _, headers, _ in server.requests}
    assert signed == {"acs" if algorithm == "openapi" else "DLF4-HMAC-SHA256"}


@pytest.mark.parametrize("more", [{"dlf.access-key-secret": "wrong"}, {"dlf.security-token": None}, {"dlf.region": "cn-hangzhou"}])
def test_other_keys_are_refused_and_never_shown(server, more) -> None:
    with pytest.raises(NotAuthorized, match=r"keys of options 'dlf\.\*' are wrong, missing or expired") as caught:
        Catalog.create(options(server, **more)).list_databases()
    assert not [secret for secret in ("secret-of-dlf", "token-of-dlf", "wrong-secret") if secret in str(caught.value)]


def test_keys_come_from_a_file_that_is_read_again_before_they_expire(server, tmp_path) -> None:
    file = tmp_path / "token"

    def write(secret: str, hours: float) -> None:
        expires = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        file.write_text(
            json.dumps({"AccessKeyId": "key", "AccessKeySecret": secret, "SecurityToken": "token-of-dlf", "Expiration": expires})
        )

    by_file = {"dlf.access-key-id": None, "dlf.access-key-secret": None, "dlf.security-token": None, "dlf.token-path": str(file)}
    write("secret-of-dlf", 0.5)
    catalog = Catalog.create(options(server, **by_file))
    assert catalog.list_databases() == []
    file.write_text("")
    assert catalog.list_databases() == [], "keys for half an hour serve while the file is rewritten"
    server.dlf = DlfKeys("key", "next", "token-of-dlf")
    write("next", 5)
    assert catalog.list_databases() == []
    file.write_text("{}")
    assert catalog.list_databases() == [], "keys for five hours are kept"
    with pytest.raises(NotAuthorized, match="has no keys"):
        Catalog.create(options(server, **by_file)).list_databases()
    file.unlink()
    with pytest.raises(NotAuthorized, match="cannot be read"):
        Catalog.create(options(server, **by_file)).list_databases()


def test_keys_come_from_the_role_of_the_machine(server) -> None:
    asked = []

    class Metadata(BaseHTTPRequestHandler):
        def log_message(self, *_) -> None:
            pass

        def do_GET(self) -> None:
            asked.append(self.path)
            keys = {"AccessKeyId": "key", "AccessKeySecret": "secret-of-dlf", "SecurityToken": "token-of-dlf"}
            content = b"role\n" if self.path == "/roles/" else json.dumps(keys).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Metadata) as metadata:
        threading.Thread(target=metadata.serve_forever, args=(0.05,), daemon=True).start()
        url = f"http://127.0.0.1:{metadata.server_address[1]}/roles/"
        by_role = {"dlf.access-key-id": None, "dlf.token-loader": "ecs", "dlf.token-ecs-metadata-url": url}
        assert Catalog.create(options(server, **by_role)).list_databases() == []
        assert Catalog.create(options(server, **by_role, **{"dlf.token-ecs-role-name": "mine"})).list_databases() == []
        metadata.shutdown()
    assert asked == ["/roles/", "/roles/role", "/roles/mine"]
    nowhere = {**by_role, "dlf.token-ecs-metadata-url": "http://127.0.0.1:1/"}
    with pytest.raises(NotAuthorized, match="is this an ECS machine"):
        Catalog.create(options(server, **nowhere)).list_databases()


@pytest.mark.parametrize("field", ["AccessKeyId", "AccessKeySecret", "SecurityToken"])
@pytest.mark.parametrize("odd", ["in-two\nlines", "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "snow\N{SNOWMAN}", 7])
def test_keys_that_no_header_can_have_are_refused_and_never_shown(server, tmp_path, field, odd) -> None:
    file = tmp_path / "token"
    keys = {"AccessKeyId": "key", "AccessKeySecret": "secret-of-dlf", "SecurityToken": "token-of-dlf", field: odd}
    file.write_text(json.dumps(keys))
    with pytest.raises(NotAuthorized, match=r"the file of option 'dlf\.token-path' has no keys: .* a line of ASCII characters") as caught:
        Catalog.create(options(server, **{"dlf.token-path": str(file)})).list_databases()
    shown = "".join(traceback.format_exception(caught.value))
    assert not isinstance(odd, str) or (odd not in shown and ascii(odd)[1:-1] not in shown)


@pytest.mark.parametrize(
    ("answer", "role"), [(b"no http\r\n\r\n", "mine"), (b"", "of two\nlines"), (b"", "caf\N{LATIN SMALL LETTER E WITH ACUTE}")]
)
def test_a_machine_that_answers_otherwise_has_no_keys(answer, role) -> None:
    with socket.create_server(("127.0.0.1", 0)) as metadata:

        def serve() -> None:
            with suppress(OSError):  # the test is over
                while True:
                    link, _ = metadata.accept()
                    with link:
                        link.recv(1 << 16)
                        link.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{metadata.getsockname()[1]}/roles/"
        signer = DlfSigner(DlfOptions("cn-beijing", metadata_url=url, role=role), "http://x")
        with pytest.raises(NotAuthorized, match="metadata cannot be read"):
            signer.headers("GET", "/v1/config", None)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({}, InvalidArgument, "need 'dlf.access-key-id' and 'dlf.access-key-secret'"),
        ({"dlf.access-key-id": "a"}, InvalidArgument, "need 'dlf.access-key-id'"),
        ({"dlf.token-loader": "vault"}, UnsupportedOption, "use 'local_file' or 'ecs'"),
        ({"dlf.token-loader": "local_file"}, InvalidArgument, "option 'dlf.token-path' is missing"),
        ({"dlf.signing-algorithm": "md5"}, UnsupportedOption, "use 'default' or 'openapi'"),
    ],
)
def test_options_are_checked(given, kind, said) -> None:
    with pytest.raises(kind, match=said):
        DlfOptions.of(given, "http://cn-hangzhou.example.com")


def test_region_and_algorithm_come_from_the_address() -> None:
    keys = {"dlf.access-key-id": "a", "dlf.access-key-secret": "b"}
    assert DlfOptions.of(keys, "https://pre-ap-southeast-1-vpc.dlf.aliyuncs.com").region == "ap-southeast-1"
    assert DlfOptions.of(keys, "https://dlfnext.cn-beijing.aliyuncs.com").algorithm == "openapi"
    with pytest.raises(InvalidArgument, match=r"'dlf\.region' is missing"):
        DlfOptions.of(keys, "http://127.0.0.1:80")


def test_a_server_sets_no_keys_but_may_name_the_endpoint_of_oss() -> None:
    given = {"uri": "http://cn-beijing.x", "token.provider": "dlf", "dlf.access-key-id": "a", "dlf.access-key-secret": "b-secret"}
    theirs = {"dlf.access-key-secret": "evil", "dlf.security-token": "evil", "dlf.token-path": "/etc/passwd", "dlf.oss-endpoint": "oss.x"}
    mine = RestOptions.of(given)
    merged = mine.merge(theirs, theirs)
    assert merged.dlf == DlfOptions("cn-beijing", keys=DlfKeys("a", "b-secret"))
    assert merged.storage["fs.oss.endpoint"] == "oss.x"
    assert "b-secret" not in repr(mine)
    assert "b-secret" not in repr(mine.dlf)
    assert DlfSigner(mine.dlf, mine.uri).secrets == ("b-secret",)
