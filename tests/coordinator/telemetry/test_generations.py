"""What each generation wants of a request (SERVERS 2), and what its answers mean."""

import pytest

from coordinator.telemetry import generations as wants
from coordinator.telemetry.generations import Generation
from coordinator.telemetry.settings import TelemetryOptions

OPTIONS = TelemetryOptions(
    url="http://127.0.0.1:8086",
    database="edged",
    org="lab",
    bucket="b",
    username="u",
    retention_policy="week",
)


@pytest.mark.parametrize(
    ("version", "which"),
    [
        ("1.6.7~rc0", "v1"),
        ("1.8.10", "v1"),
        ("v2.7.1", "v2"),
        ("2.9.1", "v2"),
        ("3.1.0", "v3"),
        ("unknown", None),
    ],
)
def test_the_generation_is_in_the_version(version: str, which: str | None) -> None:
    assert wants.generation(version) == which


@pytest.mark.parametrize(
    ("which", "path", "query"),
    [
        ("v1", "/write", {"db": "edged", "rp": "week", "precision": "n"}),
        ("v2", "/api/v2/write", {"org": "lab", "bucket": "b", "precision": "ns"}),
        ("v3", "/api/v3/write_lp", {"db": "edged", "precision": "nanosecond", "accept_partial": "true"}),
    ],
)
def test_each_names_nanoseconds_in_its_own_way(which: Generation, path: str, query: dict[str, str]) -> None:
    assert wants.write_target(which, OPTIONS) == (path, query)


def test_each_is_authorised_in_its_own_way() -> None:
    assert wants.headers("v1", OPTIONS, "p") == {"Authorization": "Basic dTpw"}
    assert wants.headers("v2", OPTIONS, "T") == {"Authorization": "Token T"}
    assert wants.headers("v3", OPTIONS, "T") == {"Authorization": "Bearer T"}
    assert wants.headers("v1", TelemetryOptions(), "") == wants.headers("v3", OPTIONS, "") == {}


CONFLICT = (
    '{"error":"partial write: field type conflict: input field \\"joules\\" on measurement \\"round\\" is '
    'type float, already exists as type integer dropped=1"}'
)
LEFT_OUT = (
    '{"error":"partial write of line protocol occurred","data":[{"original_line":"x","line_number":2,'
    '"error_message":"invalid column type for column \'joules\'"}]}'
)


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (204, "", "stored", ""),
        (400, CONFLICT, "partial", '"joules"'),
        (422, CONFLICT, "partial", '"joules"'),
        (400, LEFT_OUT, "partial", "'joules'"),
        (400, '{"error":"unable to parse \'x\': missing fields"}', "refused", "missing fields"),
        (413, '{"code":"request too large","message":"cannot read data"}', "refused", "cannot read"),
        (401, '{"error":"authorization failed"}', "settings", "user u may not write"),
        (403, "", "settings", "may not write"),
        (404, '{"error":"database not found: \\"edged\\""}', "settings", "telemetry setup"),
        (500, '{"error":"retention policy not found: week"}', "settings", "telemetry setup"),
        (500, '{"error":"timeout"}', "away", "timeout"),
        (503, "<html>proxy</html>", "away", "HTTP 503"),
        (307, "", "settings", "moved to https://other"),
    ],
)
def test_an_answer_means(status: int, body: str, kind: str, says: str) -> None:
    verdict = wants.judge(status, body, {"location": "https://other"}, OPTIONS)
    assert verdict.kind == kind
    assert says in verdict.text


def test_the_server_may_say_when_to_come_back() -> None:
    assert wants.judge(429, "", {"retry-after": "12"}, OPTIONS).after_seconds == 12.0
    assert wants.judge(429, "", {"retry-after": "Tue, 01 Dec"}, OPTIONS).after_seconds is None
