"""A REST catalog's server for tests, made from Paimon's OpenAPI file: JSON over HTTP on 127.0.0.1, tables as files of one directory.

It knows tables by name and id, makes snapshots under a lock, and serves pages of ``page`` names. ``requests`` has every request with its
headers and body; ``answers`` may replace the answer to a request.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlsplit

from manifest.expire.branches import create_branch, delete_branch, fast_forward
from manifest.expire.rollback import rollback_to
from manifest.expire.tags import delete_tag
from manifest.io.errors import InvalidSchema, SnapshotNotFound
from manifest.io.paths import split_branch, with_branch
from manifest.schema import change
from manifest.schema.manager import SchemaManager
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from manifest.storage.resolve import file_io_for
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument, PaimonError, UnknownColumn
from pyspark_paimon.plugins.catalogs.rest.dlf import DlfKeys, Signed, default_headers, openapi_headers

TOKEN = "a-token-that-nobody-sees"
PREFIX = "the prefix"


@dataclass
class Held:
    """What the server knows of a table."""

    path: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    external: bool = False
    newest: dict[str, Any] | None = None


class Refused(Exception):
    def __init__(self, status: int, kind: str | None = None, name: str | None = None, message: str = "no") -> None:
        super().__init__(message)
        self.status, self.kind, self.name = status, kind, name


class CatalogServer:
    """Listens on ``port`` from ``with`` on."""

    def __init__(
        self,
        folder: Path | str,
        *,
        page: int = 2,
        storage: dict[str, str] | None = None,
        lends: Callable[[str], dict[str, Any]] | None = None,
    ) -> None:
        self.file_io, self.folder = file_io_for(folder, storage_options=storage)
        self.page = page
        self.lends = lends
        self.databases: dict[str, dict[str, str]] = {}
        self.tables: dict[tuple[str, str], Held] = {}
        self.views: dict[tuple[str, str], dict[str, Any]] = {}
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.answers: Callable[[str, str], tuple[int, Any] | None] = lambda method, path: None
        self.defaults: dict[str, str] = {"prefix": PREFIX, "of-another-engine": "yes"}
        self.overrides: dict[str, str] = {}
        self.without: set[str] = set()
        self.dlf: DlfKeys | None = None
        """Whose signatures are wanted, instead of the token."""
        self.lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def options(self, port: int | None = None, **more: str) -> dict[str, str]:
        uri = f"http://127.0.0.1:{port or self.port}"
        return {"metastore": "rest", "uri": uri, "warehouse": "main house", "token.provider": "bear", "token": TOKEN, **more}

    def answer(self, method: str, path: str, headers: dict[str, str], body: Any) -> Any:
        parts = urlsplit(path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        steps = [unquote_plus(step) for step in parts.path.strip("/").split("/")]
        if self.dlf is None and headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refused(401, message=f"not {headers.get('authorization')}")
        if steps == ["v1", "config"]:
            if asked.get("warehouse") != "main house":
                raise Refused(404, "WAREHOUSE", asked.get("warehouse"))
            return {"defaults": self.defaults, "overrides": self.overrides}
        if steps[:2] != ["v1", PREFIX]:
            raise Refused(404, message="")
        match method, steps[2:]:
            case _, ["databases"]:
                return self._databases(method, asked, body)
            case "POST", ["tables", "rename"]:
                return self._rename(body)
            case "POST", ["views", "rename"]:
                source, target = ((body[end]["database"], body[end]["object"]) for end in ("source", "destination"))
                if target in self.views:
                    raise Refused(409, "VIEW", target[1])
                self.views[target] = self._known_view(source)
                del self.views[source]
                return None
            case _, ["databases", name, *rest]:
                if name not in self.databases:
                    raise Refused(404, "DATABASE", name)
                return self._in_database(method, name, rest, asked, body)
        raise Refused(404, message="")

    def check_signature(self, method: str, path: str, headers: dict[str, str], content: bytes) -> None:
        """Refuse a request whose signature is not that of its content."""
        if self.dlf is None:
            return
        plain, _, query = path.partition("?")
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        openapi = headers.get("authorization", "").startswith("acs ")
        layout, moment = ("%a, %d %b %Y %H:%M:%S GMT", headers.get("date")) if openapi else ("%Y%m%dT%H%M%SZ", headers.get("x-dlf-date"))
        if moment is None:
            raise Refused(401, message="no signature")
        request = Signed(method, plain, parameters, content, datetime.strptime(moment, layout).replace(tzinfo=UTC))
        if openapi:
            wanted = openapi_headers(self.dlf, headers["host"], request, headers["x-acs-signature-nonce"])
        else:
            wanted = default_headers(self.dlf, "cn-beijing", request)
        if any(headers.get(name.lower()) != value for name, value in wanted.items()):
            raise Refused(401, message="the signature is another one")

    def _databases(self, method: str, asked: dict[str, str], body: Any) -> Any:
        if method == "GET":
            return self._paged("databases", sorted(self.databases), asked)
        if body["name"] in self.databases:
            raise Refused(409, "DATABASE", body["name"])
        self.databases[body["name"]] = dict(body.get("options") or {})
        return None

    def _paged(self, what: str, names: list[str], asked: dict[str, str]) -> Any:
        left = [name for name in names if name > asked.get("pageToken", "")]
        return {what: left[: self.page], "nextPageToken": left[self.page - 1] if len(left) > self.page else None}

    def _rename(self, body: Any) -> None:
        source, target = ((body[end]["database"], body[end]["object"]) for end in ("source", "destination"))
        if source not in self.tables:
            raise Refused(404, "TABLE", source[1])
        if target in self.tables:
            raise Refused(409, "TABLE", target[1])
        held = self.tables.pop(source)
        moved = f"{self.folder}/{target[0]}.db/{target[1]}"
        self.file_io.rename_directory(held.path, moved)
        held.path = moved
        self.tables[target] = held

    def _in_database(self, method: str, database: str, rest: list[str], asked: dict[str, str], body: Any) -> Any:
        match method, rest:
            case "GET", []:
                return {"name": database, "options": self.databases[database], "location": "somewhere"}
            case "POST", []:
                options = self.databases[database] | body["updates"]
                self.databases[database] = {name: value for name, value in options.items() if name not in body["removals"]}
                return {"removed": body["removals"], "updated": list(body["updates"]), "missing": []}
            case "DELETE", []:
                del self.databases[database]
                return None
            case "GET", ["tables"]:
                return self._paged("tables", sorted(name for where, name in self.tables if where == database), asked)
            case "POST", ["tables"]:
                return self._create(database, body)
            case "GET", ["views"] if "views" not in self.without:
                return self._paged("views", sorted(name for where, name in self.views if where == database), asked)
            case _, ["views", *name] if "views" not in self.without:
                return self._of_views(method, database, name, body)
            case _, ["tables", name, *operation]:
                held = self.tables.get((database, name))
                if held is None:
                    raise Refused(404, "TABLE", name)
                if operation and operation[0] in self.without:
                    raise Refused(501, message="not built")
                with self.lock:
                    return self._of_table(method, (database, name), held, operation, body)
        raise Refused(404, message="")

    def _known_view(self, key: tuple[str, str]) -> dict[str, Any]:
        if key not in self.views:
            raise Refused(404, "VIEW", key[1])
        return self.views[key]

    def _of_views(self, method: str, database: str, name: list[str], body: Any) -> Any:
        if not name:
            key = database, body["identifier"]["object"]
            if key in self.views:
                raise Refused(409, "VIEW", key[1])
            self.views[key] = {"comment": None, **body["schema"]}
            return None
        view = self._known_view((database, name[0]))
        match method:
            case "GET":
                return {"id": "x", "name": name[0], "schema": view}
            case "DELETE":
                del self.views[database, name[0]]
            case "POST":
                for said in body["changes"]:
                    _change_view(view, said)
        return None

    def _create(self, database: str, body: Any) -> None:
        key = database, body["identifier"]["object"]
        if key in self.tables:
            raise Refused(409, "TABLE", key[1])
        given = body["schema"]
        path = given["options"].pop("path", None)
        held = Held(path or f"{self.folder}/{database}.db/{key[1]}", external=path is not None)
        highest = max(field["id"] for field in given["fields"])
        SchemaManager(self.file_io, held.path).create(TableSchema.model_validate({**given, "id": 0, "highestFieldId": highest}))
        self.tables[key] = held

    def _of_table(self, method: str, key: tuple[str, str], held: Held, operation: list[str], body: Any) -> Any:
        store = FileStore.open(with_branch(held.path, split_branch(key[1])[1]), self.file_io)
        match method, operation:
            case "GET", []:
                schema = store.schema.model_dump(by_alias=True)
                names = ("fields", "partitionKeys", "primaryKeys", "options", "comment")
                told = {name: schema[name] for name in names}
                return {
                    "id": held.id,
                    "database": key[0],
                    "name": key[1],
                    "path": held.path,
                    "isExternal": held.external,
                    "schemaId": store.schema.id,
                    "schema": told,
                }
            case "POST", []:
                store.schemas.alter([ours(said) for said in body["changes"]])
                return None
            case "DELETE", []:
                del self.tables[key]
                if not held.external:
                    self.file_io.delete_directory(held.path, recursive=True)
                return None
            case "POST", ["commit"]:
                if body["tableId"] != held.id:
                    raise Refused(404, "TABLE", key[1])
                return {"success": self._committed(store, held, body["snapshot"])}
            case "GET", ["snapshot"]:
                if held.newest is None:
                    raise Refused(404, "SNAPSHOT", key[1], "No Snapshot")
                return {
                    "snapshot": {"snapshot": held.newest, "recordCount": 0, "fileSizeInBytes": 0, "fileCount": 0, "lastFileCreationTime": 0}
                }
            case "GET", ["snapshots", version]:
                return {"snapshot": store.snapshots.get(int(version)).model_dump(mode="json", by_alias=True, exclude_none=True)}
            case "GET", ["token"] if self.lends is not None:
                return self.lends(key[1])
            case "POST", ["rollback"]:
                instant = body["instant"]
                target = store.snapshots.travel(snapshot_id=instant.get("snapshotId"), tag=instant.get("tagName"))
                rollback_to(store, target)
                held.newest = store.snapshots.latest().model_dump(mode="json", by_alias=True, exclude_none=True)
                return None
            case "POST", ["tags"]:
                store.snapshots.create_tag(body["tagName"], store.snapshots.get(body["snapshotId"]), _millis(body.get("timeRetained")))
                return None
            case "DELETE", ["tags", name]:
                delete_tag(store, name)
                return None
            case _, ["branches", *step]:
                return self._branches((method, step), key, store, body)
        raise Refused(404, message="")

    def _committed(self, store: FileStore, held: Held, snapshot: dict[str, Any]) -> bool:
        made = store.snapshots.try_create(Snapshot.model_validate(snapshot))
        held.newest = snapshot if made else held.newest
        return made

    def _branches(self, asked: tuple[str, list[str]], key: tuple[str, str], store: FileStore, body: Any) -> None:
        held = self.tables[key]
        match asked:
            case "POST", []:
                if body["branch"] in store.snapshots.branch_names():
                    raise Refused(409, "BRANCH", body["branch"])
                create_branch(store, body["branch"], body.get("fromTag"))
                newest = FileStore.open(with_branch(held.path, body["branch"]), self.file_io).snapshots.latest()
                known = None if newest is None else newest.model_dump(mode="json", by_alias=True, exclude_none=True)
                self.tables[key[0], f"{key[1]}$branch_{body['branch']}"] = Held(held.path, held.id, newest=known)
            case "DELETE", [name]:
                if name not in store.snapshots.branch_names():
                    raise Refused(404, "BRANCH", name)
                delete_branch(store, name)
                self.tables.pop((key[0], f"{key[1]}$branch_{name}"), None)
            case "POST", [name, "forward"]:
                fast_forward(store, name)
                held.newest = store.snapshots.latest().model_dump(mode="json", by_alias=True, exclude_none=True)
            case _:
                raise Refused(404, message="")


def _change_view(view: dict[str, Any], said: dict[str, Any]) -> None:
    match said["action"]:
        case "addDialect" | "updateDialect" as action:
            if (said["dialect"] in view["dialects"]) is (action == "addDialect"):
                raise Refused(409 if action == "addDialect" else 404, "DIALECT", said["dialect"])
            view["dialects"][said["dialect"]] = said["query"]
        case "dropDialect":
            del view["dialects"][said["dialect"]]
        case "setOption":
            view["options"][said["key"]] = said["value"]
        case "removeOption":
            del view["options"][said["key"]]
        case "updateComment":
            view["comment"] = said["comment"]


def ours(said: dict[str, Any]) -> change.SchemaChange:
    """One of the API's changes as ours."""
    path, move = tuple(said.get("fieldNames") or ()), said.get("move") or {}
    place = {"first": move.get("type") == "FIRST", "after": move.get("referenceFieldName")}
    match said["action"]:
        case "setOption":
            return change.ChangeOptions(options={said["key"]: said["value"]})
        case "removeOption":
            return change.ChangeOptions(options={said["key"]: None})
        case "updateComment":
            return change.ChangeComment(comment=said["comment"])
        case "addColumn":
            return change.AddColumn(path=path, type=said["dataType"], comment=said["comment"], **place)
        case "renameColumn":
            return change.RenameColumn(path=path, name=said["newName"])
        case "dropColumn":
            return change.DropColumn(path=path)
        case "updateColumnType":
            return change.ChangeType(path=path, type=said["newDataType"])
        case "updateColumnNullability":
            return change.ChangeNullability(path=path, nullable=said["newNullability"])
        case "updateColumnComment":
            return change.ChangeComment(path=path, comment=said["newComment"])
        case "updateColumnDefaultValue":
            return change.ChangeDefault(path=path, default=said["newDefaultValue"])
        case "updateColumnPosition":
            return change.MoveColumn(path=(move["fieldName"],), **place)
    raise AssertionError(said)


def _millis(text: str | None) -> int | None:
    return None if text is None else int(text.removesuffix(" ms"))


def _refused(error: Exception) -> tuple[int, dict[str, Any]]:
    match error:
        case Refused(status=status, kind=kind, name=name):
            return status, {"message": str(error), "resourceType": kind, "resourceName": name, "code": status}
        case UnknownColumn():
            return 404, {"message": str(error), "resourceType": "COLUMN", "resourceName": error.column, "code": 404}
        case SnapshotNotFound():
            return 404, {"message": str(error), "resourceType": "SNAPSHOT", "resourceName": None, "code": 404}
        case InvalidSchema():
            return 409, {"message": str(error), "resourceType": "COLUMN", "resourceName": None, "code": 409}
        case InvalidArgument() if "exists" in str(error):
            return 409, {"message": str(error), "resourceType": "TAG", "resourceName": None, "code": 409}
        case PaimonError():
            return 400, {"message": str(error), "resourceType": None, "resourceName": None, "code": 400}
    return 500, {"message": f"{type(error).__name__}: {error}", "resourceType": None, "resourceName": None, "code": 500}


def _handler(server: CatalogServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(content) if content else None
            server.requests.append((self.command, self.path, headers, body))
            replaced = server.answers(self.command, self.path)
            try:
                server.check_signature(self.command, self.path, headers, content)
                status, said = replaced or (200, server.answer(self.command, self.path, headers, body))
            except Exception as error:  # noqa: BLE001  # a server goes on
                status, said = _refused(error)
            text = b"" if said is None or (isinstance(said, dict) and said.get("message") == "") else json.dumps(said).encode()
            self.send_response(status)
            if status in {429, 503}:
                self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815

    return Handler


def lent(options: dict[str, str], seconds: float) -> dict[str, Any]:
    """An answer to ``GET .../token``."""
    return {"token": options, "expiresAtMillis": int((time.time() + seconds) * 1000)}


__all__ = ["PREFIX", "TOKEN", "CatalogServer", "lent"]
