"""What the service manager and the journal say, as it is read here, and a start that does not succeed."""

import pytest

from edged.install import units
from edged.install.machine import InstallError
from tests.edged.install.image import Image

SHOWN = """\
LoadState=loaded
ActiveState=activating
SubState=auto-restart
Result=exit-code
ExecMainStatus=78
NRestarts=3
StatusText=idle; x=1
ActiveEnterTimestamp=Mon
"""


def test_the_service_managers_answer_is_read(image: Image) -> None:
    image.answers["systemctl show"] = SHOWN
    found = units.asked(image.running(), "edged")
    assert found == units.Service("activating", "auto-restart", "exit-code", 78, 3, "idle; x=1", "Mon")


def test_a_unit_that_is_not_there_is_none(image: Image) -> None:
    image.answers["systemctl show"] = "LoadState=not-found\nActiveState=inactive\n"
    assert units.asked(image.running(), "edged") is None


def test_a_service_whose_settings_cannot_be_used_says_line_and_key(image: Image) -> None:
    image.answers["systemctl show"] = SHOWN
    image.answers["journalctl"] = (
        "older\nedged run: /etc/edged/edged.toml: broker.prot: unknown key\n"
        "Failed to start edged.service - edged: trains this board's share.\n"
    )
    with pytest.raises(InstallError, match=r"cannot be used: edged run: .*broker\.prot") as found:
        list(units.start(image.running(), "edged"))
    assert found.value.status == 78


def test_why_there_is_no_last_error_is_told(image: Image) -> None:
    assert units.last_error(image.running(), "edged") == (None, "none in the journal")
    image.fails = "journalctl"
    assert "systemd-journal" in units.last_error(image.running(), "edged")[1]
