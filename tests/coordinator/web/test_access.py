"""Who may see the page: anybody on this machine; from elsewhere only with a token."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator.cli import app as commands
from coordinator.commands import exits
from coordinator.web.settings import WebError, WebOptions
from tests.coordinator.web.paged import Paged

TOKEN = "0123456789abcdef0123"


def test_with_a_token_only_who_knows_it_sees_anything(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    paged = Paged(tmp_path, str(file))
    try:
        for path in ("/", "/api/state", "/metrics", "/api/events", "/static/main.js"):
            assert paged.get(path).status == 401
        assert paged.get("/healthz").status == 200
        assert paged.get("/api/state", Authorization=f"Bearer {TOKEN}").status == 200
        assert paged.get("/api/state", Authorization=f"Bearer {TOKEN}x").status == 401
        form = {"Content_Type": "application/x-www-form-urlencoded"}
        assert paged.ask("POST", "/login", b"token=wrong", **form).status == 401
        answer = paged.ask("POST", "/login", f"token={TOKEN}".encode(), **form)
        assert answer.status == 303
        assert "httponly" in answer.headers["set-cookie"].lower()
        assert paged.get("/", Cookie=answer.headers["set-cookie"].partition(";")[0]).status == 200
    finally:
        paged.close()


@pytest.mark.parametrize(
    ("listen", "says"),
    [
        ("0.0.0.0:80", "needs a token"),
        ("[::]:80", "needs a token"),
        ("nonsense", "host:port"),
        ("1.2.3.4:x", "host:port"),
    ],
)
def test_an_address_that_others_reach_wants_a_token(listen: str, says: str) -> None:
    with pytest.raises(WebError, match=says):
        WebOptions(listen=listen).token({})


@pytest.mark.parametrize("listen", ["0.0.0.0:80", "nonsense"])
def test_serve_refuses_such_an_address_before_it_begins(listen: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(commands, ["serve", "--web", listen, "--store", str(tmp_path / "store")])
    assert done.exit_code == exits.CONFIG
    assert listen in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "store").exists()


def test_a_token_that_is_short_is_refused() -> None:
    with pytest.raises(WebError, match="16 at least"):
        WebOptions().token({"EDGED_WEB_TOKEN": "short"})
    assert WebOptions(listen="0.0.0.0:80").token({"EDGED_WEB_TOKEN": TOKEN}) == TOKEN


def test_a_port_that_is_taken_is_named_with_the_way_out(paged: Paged) -> None:
    from coordinator.web.host import Host

    options = WebOptions(listen=f"127.0.0.1:{paged.port}")
    with pytest.raises(WebError, match="give another port"):
        Host(options, lambda item: None, lambda: None, Path())  # type: ignore[arg-type, return-value]
