"""What the daemon's process is made of: which settings become what, and which libraries stay out of it."""

import json
import subprocess
import sys

import pytest

from edged import daemon
from edged.config import check
from edged.stock import Info, Listing, Pool, stock_of
from probes.emulated import Activity

FORBIDDEN = ("typer", "click", "rich", "numpy", "torch", "safetensors", "scipy")


def test_the_daemon_imports_none_of_what_it_must_not() -> None:
    """Everything that the loop can reach without a child: the modules are imported, none is left for
    later.
    """
    code = "import sys, json, edged.daemon; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & set(FORBIDDEN)


def test_settings_become_the_links_configuration() -> None:
    settings = check(
        {
            "board": {"id": "pi4", "fleet": "attic"},
            "broker": {
                "host": "far",
                "port": 8883,
                "username": "pi4",
                "ca_file": "/ca",
                "password_file": "/pw",
            },
        }
    )
    link = daemon.link_config(settings)
    assert (link.host, link.port, link.client_id) == ("far", 8883, "edged-attic-pi4")
    assert (link.username, link.password_file, link.tls, link.ca_file) == ("pi4", "/pw", True, "/ca")
    plain = daemon.link_config(check({"board": {"id": "pi4"}}))
    assert (plain.username, plain.tls, plain.certificate_file) == (None, False, None)


@pytest.mark.parametrize(
    ("tables", "threads"),
    [({}, None), ({"training": {"threads": 3}}, 3), ({"emulate": {"board": "rpi4"}}, 1)],
)
def test_an_emulated_board_trains_with_one_thread(tables: dict[str, object], threads: int | None) -> None:
    assert daemon.plan_of(check({"board": {"id": "pi4"}, **tables})).threads == threads


def test_an_emulated_board_has_no_other_sensor() -> None:
    settings = check({"emulate": {"board": "rpi4"}})
    watts = {"emulated": {"board": "rpi4", "wait_watts": 2.0, "train_watts": 6.0}}
    meter = daemon.open_meter(settings, watts, Activity())
    channels = daemon.channels_of(meter)
    meter.close()
    assert [(one.id, one.basis, one.headline) for one in channels] == [("emulated/rpi4", "emulated", True)]


def test_a_pool_that_no_task_can_read_is_shown_and_not_offered() -> None:
    listing = Listing(
        tasks={"digits": "hash"},
        pools={
            "good": Pool(info=Info(samples=9, fingerprint="print"), tasks=("digits",)),
            "bad": Pool(error="/nowhere: no such folder"),
        },
    )
    stock = stock_of(listing)
    assert stock.can.pools == {"good": "print"}
    assert "pma" in stock.can.regimes
    assert stock.offer["pools"]["bad"].error == "/nowhere: no such folder"
    assert stock.offer["pools"]["good"].tasks == ("digits",)


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (Pool(error="/nowhere: no such folder"), "cannot be used: /nowhere: no such folder"),
        (
            Pool(Info(9, "print"), ("a",), "b: /data: truncated"),
            "serves a alone: b: /data: truncated",
        ),
        (Pool(Info(9, "print"), ("a",)), None),
    ],
)
def test_the_log_is_told_which_pool_cannot_be_used_and_why(pool: Pool, words: str | None) -> None:
    assert stock_of(Listing(pools={"mnist": pool})).troubles.get("pool mnist") == words


def test_the_log_is_told_which_task_cannot_be_used_and_why() -> None:
    troubles = stock_of(Listing(task_errors={"own": "own.py: no such library"})).troubles
    assert troubles == {"task own": "cannot be used: own.py: no such library"}
