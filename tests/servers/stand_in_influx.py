"""A strict stand-in for InfluxDB 2.x and 3.x: their authorization, words for precision, and refusals.

It holds no more than what the rules need: points, types of fields, tags of tables, buckets and mappings.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "a-token"
ORG = {"id": "0a", "name": "lab"}
LINE = re.compile(r"^([^, ]+)((?:,(?:\\.|[^\\ ])*)?) ((?:\\.|\"(?:\\.|[^\"])*\"|[^\\\" ])+) (\d{19})$")
PAIR = re.compile(r"((?:\\.|[^\\,=])+)=(\"(?:\\.|[^\"])*\"|(?:\\.|[^\\,])*)")
PRECISIONS = {
    "v2": {"ns", "us", "ms", "s"},
    "v3": {"nanosecond", "microsecond", "millisecond", "second", "auto"},
}


class LineError(ValueError):
    """One line that cannot be taken."""


class StandIn:
    """`generation` is v2 or v3. `sick` answers that status to all writes, with `after` as Retry-After."""

    def __init__(self, generation: str) -> None:
        self.generation, self.sick, self.after = generation, 0, ""
        self.points: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.types: dict[tuple[str, str], str] = {}
        self.tags: dict[str, tuple[str, ...]] = {}
        self.buckets: dict[str, dict[str, Any]] = {}
        self.mappings: list[dict[str, Any]] = []
        self.batches = 0
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                stand_in.answer(self, "GET", b"")

            def do_POST(self) -> None:
                stand_in.answer(self, "POST", self.rfile.read(int(self.headers.get("Content-Length", 0))))

            def log_message(self, *_: object) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, request: BaseHTTPRequestHandler, method: str, body: bytes) -> None:
        url = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        status, said = self._routed(method, url.path, query, request.headers.get("Authorization", ""), body)
        text = b"" if said is None else json.dumps(said).encode()
        request.send_response(status)
        request.send_header("X-Influxdb-Version", "v2.7.11" if self.generation == "v2" else "3.1.0")
        request.send_header("Content-Length", str(len(text)))
        if self.after and status >= 429:
            request.send_header("Retry-After", self.after)
        request.end_headers()
        request.wfile.write(text)

    def _routed(
        self, method: str, path: str, query: dict[str, str], authorization: str, body: bytes
    ) -> tuple[int, Any]:
        allowed = {f"Token {TOKEN}"} | ({f"Bearer {TOKEN}"} if self.generation == "v3" else set())
        if path == "/ping":
            open_to_all = self.generation == "v2" or authorization in allowed
            return (204, None) if open_to_all else (401, {"error": "the request was not authenticated"})
        if authorization not in allowed:
            return 401, {"code": "unauthorized", "message": "unauthorized access"}
        routes = {
            ("POST", "/api/v2/write"): self._write_v2,
            ("POST", "/api/v3/write_lp"): self._write_v3,
            ("POST", "/api/v3/configure/database"): self._database,
            ("GET", "/api/v2/orgs"): self._orgs,
            ("GET", "/api/v2/buckets"): self._find_bucket,
            ("POST", "/api/v2/buckets"): self._make_bucket,
            ("GET", "/api/v2/dbrps"): self._find_mapping,
            ("POST", "/api/v2/dbrps"): self._make_mapping,
            ("POST", "/query"): self._query,
        }
        found = routes.get((method, path))
        wrong_one = f"/api/{'v3' if self.generation == 'v2' else 'v2'}"
        if found is None or (path.startswith(wrong_one) and path != "/api/v2/write"):
            return 404, {"code": "not found", "message": "path not found"}
        return found(query, body)

    def _write_v2(self, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if self.sick:
            return self.sick, {"message": "not now"}
        if self.generation == "v2" and query.get("org") not in (ORG["id"], ORG["name"]):
            return 404, {"code": "not found", "message": f"organization name {query.get('org')!r} not found"}
        if self.generation == "v2" and query.get("bucket") not in self.buckets:
            return 404, {"code": "not found", "message": f"bucket {query.get('bucket')!r} not found"}
        if query.get("precision", "ns") not in PRECISIONS["v2"]:
            return 400, {"code": "invalid", "message": "invalid precision"}
        # 3.x takes the whole batch or nothing here; 2.x keeps the good lines.
        left_out = self._take(body, whole=self.generation == "v3")
        if not left_out:
            return 204, None
        if self.generation == "v3":
            return 400, {
                "error": "write of line protocol failed",
                "data": [{"error_message": left_out[0][2]}],
            }
        text = f"partial write: {left_out[0][2]} dropped={len(left_out)}"
        return 422, {"code": "unprocessable entity", "message": f"failure writing points to database: {text}"}

    def _write_v3(self, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if self.sick:
            return self.sick, {"error": "not now"}
        if "db" not in query or query.get("precision", "auto") not in PRECISIONS["v3"]:
            return 400, {"error": f"unknown precision {query.get('precision')!r} or no db"}
        partial = query.get("accept_partial", "true") == "true"
        left_out = self._take(body, whole=not partial)
        if not left_out:
            return 204, None
        rows = [{"original_line": a, "line_number": b, "error_message": c} for a, b, c in left_out]
        return 400, {
            "error": "partial write of line protocol occurred" if partial else "refused",
            "data": rows,
        }

    def _take(self, body: bytes, whole: bool) -> list[tuple[str, int, str]]:
        self.batches += 1
        good, left_out = [], []
        types, tags = dict(self.types), dict(self.tags)
        for number, line in enumerate(body.decode().split("\n"), 1):
            try:
                good.append(self._parsed(line, types, tags))
            except LineError as error:
                left_out.append((line, number, str(error)))
        if not (whole and left_out):
            self.types, self.tags = types, tags
            for key, fields in good:
                self.points.setdefault(key, {}).update(fields)
        return left_out

    def _parsed(
        self, line: str, types: dict[tuple[str, str], str], tables: dict[str, tuple[str, ...]]
    ) -> tuple[tuple[str, str, str], dict[str, str]]:
        found = LINE.match(line)
        if found is None:
            raise LineError(f"unable to parse {line[:60]!r}")
        name, tag_text, field_text, stamp = found.groups()
        tags = tuple(pair[0] for pair in PAIR.findall(tag_text.lstrip(",")))
        fields = dict(PAIR.findall(field_text))
        if not fields:
            raise LineError("missing fields")
        if self.generation == "v3":
            if set(tags) & set(fields):
                raise LineError(f"column {min(set(tags) & set(fields))} is a tag and a field")
            if not set(tags) <= set(tables.setdefault(name, tags)):
                raise LineError(f"table {name} cannot get new tags: {tags}")
        for field, value in fields.items():
            kind = _kind(value)
            if types.setdefault((name, field), kind) != kind:
                raise LineError(
                    f'field type conflict: input field "{field}" on measurement "{name}" is type {kind}, '
                    f"already exists as type {types[name, field]}"
                )
        return (name, tag_text, stamp), fields

    def _database(self, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        name = json.loads(body)["db"]
        if name in self.buckets:
            return 409, {"error": f"attempted to create a resource that already exists: {name}"}
        self.buckets[name] = json.loads(body)
        return 200, None

    def _orgs(self, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if query.get("org") != ORG["name"]:
            return 404, {"code": "not found", "message": f"organization name {query.get('org')!r} not found"}
        return 200, {"orgs": [ORG]}

    def _find_bucket(self, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        found = self.buckets.get(query["name"])
        return 200, {"buckets": [found] if found else []}

    def _make_bucket(self, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        wanted = json.loads(body)
        self.buckets[wanted["name"]] = {**wanted, "id": f"b{len(self.buckets)}"}
        return 201, self.buckets[wanted["name"]]

    def _find_mapping(self, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        return 200, {"content": [one for one in self.mappings if one["database"] == query["db"]]}

    def _make_mapping(self, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        self.mappings.append(json.loads(body))
        return 201, self.mappings[-1]

    def _query(self, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        """Knows the one statement of `telemetry check`."""
        database = query["db"]
        if self.generation == "v2" and not any(one["database"] == database for one in self.mappings):
            return 404, {"error": f'database not found: "{database}"'}
        text = re.search(r"'(check \w+)'", parse_qs(body.decode())["q"][0])
        rows = [
            [key[2], text[1]]
            for key, fields in self.points.items()
            if text and f'"{text[1]}"' in fields.values()
        ]
        series = [{"name": "event", "columns": ["time", "text"], "values": rows}] if rows else []
        return 200, {"results": [{"statement_id": 0, "series": series}]}


def _kind(value: str) -> str:
    if value.startswith('"'):
        return "string"
    if value in ("true", "false"):
        return "boolean"
    if re.fullmatch(r"-?\d+i", value):
        return "integer"
    if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", value):
        return "float"
    raise LineError(f"invalid value {value!r}")
