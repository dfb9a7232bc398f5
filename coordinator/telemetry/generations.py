"""What each generation of InfluxDB wants of a request, and what its answer to a write means. Pure.

1.x: /write, Basic. 2.x: /api/v2/write, Token. 3.x: /api/v3/write_lp, Bearer. Stamps are always nanoseconds,
named as each wants it (`us` on 1.x is taken for ns without a word). Queries are InfluxQL on /query.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from coordinator.telemetry.settings import TelemetryOptions

Generation = Literal["v1", "v2", "v3"]
Kind = Literal["stored", "partial", "refused", "settings", "away"]
SETUP: Final = "`edged-coordinator telemetry setup` creates what is missing"
LONGEST: Final = 300


class Verdict(Struct, frozen=True):
    """`partial`: all but `lost` lines are stored. `refused`: the batch, for what is in it; good lines of
    it may be stored or not. `settings`: nothing will be taken until somebody acts. `away`: try again."""

    kind: Kind
    text: str = ""
    lost: int = 0
    after_seconds: float | None = None


def generation(version: str) -> Generation | None:
    """By the header X-Influxdb-Version of /ping."""
    found = re.match(r"v?(\d+)\.", version)
    known: dict[str, Generation] = {"1": "v1", "2": "v2", "3": "v3"}
    return known.get(found[1]) if found else None


def write_target(which: Generation, options: TelemetryOptions) -> tuple[str, dict[str, str]]:
    """Path and query of a write."""
    if which == "v1":
        return "/write", _given(db=options.database, rp=options.retention_policy, precision="n")
    if which == "v2":
        return "/api/v2/write", {"org": options.org, "bucket": options.kept_in, "precision": "ns"}
    return "/api/v3/write_lp", {"db": options.database, "precision": "nanosecond", "accept_partial": "true"}


def query_target(which: Generation, options: TelemetryOptions) -> tuple[str, dict[str, str]]:
    """Path and query of an InfluxQL query; the statement goes into the body."""
    policy = options.retention_policy if which == "v1" else ""
    return "/query", _given(db=options.database, rp=policy, epoch="ns")


def headers(which: Generation, options: TelemetryOptions, secret: str) -> dict[str, str]:
    """Authorization, if there is a secret."""
    if which == "v1":
        if not options.username:
            return {}
        pair = base64.b64encode(f"{options.username}:{secret}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    if not secret:
        return {}
    return {"Authorization": f"{'Token' if which == 'v2' else 'Bearer'} {secret}"}


def judge(status: int, body: str, answered: Mapping[str, str], options: TelemetryOptions) -> Verdict:
    """What the answer to a write means. `answered` are its headers in lower case."""
    text = _said(body) or f"HTTP {status}"
    if status in (200, 204):
        return Verdict("stored")
    if status in (401, 403):
        who = f"user {options.username}" if options.username else "the token"
        return Verdict("settings", f"{who} may not write to {options.database}: {text}")
    if status == 404:
        return Verdict("settings", f"{options.url}: {text}; {SETUP}")
    if "retention policy not found" in text:
        # 1.x answers 500 to this, which looks like an outage and never ends.
        return Verdict("settings", f"retention policy {options.retention_policy!r}: {text}; {SETUP}")
    if status in (400, 413, 422):
        lost = _lost(body)
        return Verdict("refused", text) if lost is None else Verdict("partial", text, lost)
    if status in (301, 302, 307, 308):
        return Verdict(
            "settings", f"{options.url}: moved to {answered.get('location', '?')}; set [telemetry] url"
        )
    return Verdict("away", f"HTTP {status}: {text}", after_seconds=_seconds(answered.get("retry-after", "")))


def _given(**query: str) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


def _lost(body: str) -> int | None:
    """How many lines of a partial write are lost; None where that was not said (try its parts)."""
    found = re.search(r"partial write: .*dropped=(\d+)", body, re.DOTALL)
    if found:
        return int(found[1]) or None
    # 3.x lists the lines that it left out.
    return len(_left_out(_decoded(body))) or None if "partial write" in body else None


def _said(body: str) -> str:
    """The error in words, out of the JSON that it is wrapped in."""
    found = _decoded(body)
    text = str(found.get("message") or found.get("error") or body)
    first = next(iter(_left_out(found)), "")
    return " ".join(f"{text}{': ' if first else ''}{first}".split())[:LONGEST]


def _decoded(body: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _left_out(found: Mapping[str, Any]) -> list[str]:
    data = found.get("data")
    lines = data if isinstance(data, list) else []
    return [
        str(line["error_message"]) for line in lines if isinstance(line, dict) and "error_message" in line
    ]


def _seconds(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,5}", text) else None
