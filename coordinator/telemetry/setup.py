"""Makes what a server lacks (database or bucket, retention, DBRP mapping), tries a point there and back."""

import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import structs

from coordinator.telemetry.generations import Generation, judge
from coordinator.telemetry.lines import Writer
from coordinator.telemetry.schema import point
from coordinator.telemetry.server import InfluxServer
from coordinator.telemetry.settings import TelemetryError

POLICY: Final = "edged"
"""Name of the retention policy that is made on 1.x where none is configured."""
VISIBLE_SECONDS: Final = 5.0


def setup(server: InfluxServer) -> Iterator[str]:
    """Each step in words, as it is done; what is there already stays as it is. Raises TelemetryError."""
    which = _which(server)
    yield f"{server.options.url} is an InfluxDB {which[1]}.x"
    yield from {"v1": _setup_v1, "v2": _setup_v2, "v3": _setup_v3}[which](server)


def check(server: InfluxServer, fleet: str, wait: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Write a point as the coordinator does and read it back by InfluxQL, as dashboards do."""
    which, options = _which(server), server.options
    yield f"{options.url} is an InfluxDB {which[1]}.x"
    mark = f"check {secrets.token_hex(6)}"
    made = point("event", {"fleet": fleet}, {"kind": "check", "text": mark, "count": 1})
    assert made is not None
    verdict = server.write([Writer().line(structs.replace(made, nanoseconds=time.time_ns()))])
    if verdict.kind != "stored":
        raise TelemetryError(f"a point could not be written: {verdict.text}")
    yield f"a point was written to {options.kept_in if which == 'v2' else options.database}"
    until = time.monotonic() + VISIBLE_SECONDS
    while not server.query(f'SELECT "text" FROM "event" WHERE "kind" = \'check\' AND "text" = \'{mark}\''):
        if time.monotonic() > until:
            raise TelemetryError(
                f"{options.url}: the point was taken, but InfluxQL does not find it in {options.database!r}"
                + ("; the DBRP mapping points elsewhere: run telemetry setup" if which == "v2" else "")
            )
        wait(0.2)
    yield "it was read back through InfluxQL: dashboards will find data"


def points_of(server: InfluxServer, run: str) -> int:
    """How many rounds of a run the server has."""
    name = run.replace("'", "")
    for series in server.query(f'SELECT count("ordered") FROM "round" WHERE "run" = \'{name}\''):
        return int(series["values"][0][1])
    return 0


def _which(server: InfluxServer) -> Generation:
    try:
        return server.which()
    except OSError as error:
        raise TelemetryError(f"{server.options.url}: {error}") from None


def _setup_v1(server: InfluxServer) -> Iterator[str]:
    options = server.options
    # WITH DURATION fails on a database that exists; the two statements do not.
    server.query(f"CREATE DATABASE {_name(options.database)}")
    yield f"database {options.database} is there"
    policy = options.retention_policy or POLICY
    series = server.query(f"SHOW RETENTION POLICIES ON {_name(options.database)}")
    there = {row[0] for found in series for row in found.get("values", [])}
    duration = f"{options.retention_days}d" if options.retention_days else "INF"
    default = "" if options.retention_policy else " DEFAULT"
    verb = "ALTER" if policy in there else "CREATE"
    server.query(
        f"{verb} RETENTION POLICY {_name(policy)} ON {_name(options.database)} "
        f"DURATION {duration}{'' if verb == 'ALTER' else ' REPLICATION 1'}{default}"
    )
    yield f"retention policy {policy} keeps {duration}"


def _setup_v2(server: InfluxServer) -> Iterator[str]:
    options = server.options
    org = _found(server, f"/api/v2/orgs?org={options.org}", "orgs", f"organisation {options.org}")
    if org is None:
        raise TelemetryError(f"{options.url}: no organisation {options.org!r}; set [telemetry] org")
    bucket = _found(server, f"/api/v2/buckets?name={options.kept_in}&orgID={org['id']}", "buckets", "")
    if bucket is None:
        rules = [{"type": "expire", "everySeconds": options.retention_days * 86_400}]
        wanted = {"orgID": org["id"], "name": options.kept_in}
        bucket = _made(
            server, "/api/v2/buckets", {**wanted, "retentionRules": rules if rules[0]["everySeconds"] else []}
        )
    yield f"bucket {options.kept_in} is there"
    mapped = _found(server, f"/api/v2/dbrps?orgID={org['id']}&db={options.database}", "content", "")
    if mapped is None:
        mapping = {"orgID": org["id"], "bucketID": bucket["id"], "database": options.database}
        _made(server, "/api/v2/dbrps", {**mapping, "retention_policy": "autogen", "default": True})
    elif mapped.get("bucketID") != bucket["id"]:
        raise TelemetryError(
            f"{options.url}: database {options.database} is mapped to bucket {mapped.get('bucketID')}; "
            "give [telemetry] database another name, or delete that mapping"
        )
    yield f"InfluxQL database {options.database} is mapped to bucket {options.kept_in}"


def _setup_v3(server: InfluxServer) -> Iterator[str]:
    options = server.options
    wanted: dict[str, Any] = {"db": options.database}
    if options.retention_days:
        wanted["retention_period"] = f"{options.retention_days}d"
    answer = server.call("POST", "/api/v3/configure/database", wanted)
    if answer.status not in (200, 201, 204, 409):
        raise TelemetryError(judge(answer.status, answer.body, answer.headers, options).text)
    yield f"database {options.database} {'was there' if answer.status == 409 else 'is made'}"


def _found(server: InfluxServer, path: str, key: str, what: str) -> dict[str, Any] | None:
    answer = server.call("GET", path)
    if answer.status == 404:
        return None
    if answer.status >= 400:
        text = judge(answer.status, answer.body, answer.headers, server.options).text
        raise TelemetryError(f"{what or path}: {text}")
    rows = msgspec.json.decode(answer.body).get(key) or []
    return rows[0] if rows else None


def _made(server: InfluxServer, path: str, wanted: dict[str, Any]) -> dict[str, Any]:
    answer = server.call("POST", path, wanted)
    if answer.status >= 400:
        text = judge(answer.status, answer.body, answer.headers, server.options).text
        raise TelemetryError(f"{path}: {text}")
    made: dict[str, Any] = msgspec.json.decode(answer.body)
    return made


def _name(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
