"""Every regime in the folder keeps the contract; adding a file adds it to this test."""

import subprocess
import sys

import pytest

from edged import regimes


@pytest.mark.parametrize("name", regimes.names())
def test_a_regime_says_what_it_is(name: str) -> None:
    regime = regimes.find(name)
    assert name == regime.NAME
    assert regime.SUMMARY
    assert callable(regime.train)


def test_listing_and_finding_regimes_needs_no_torch() -> None:
    code = (
        "import sys\nfrom edged import regimes\n"
        "print([regimes.find(name).NAME for name in regimes.names()] and 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_unknown_regime_is_named_with_those_there_are() -> None:
    with pytest.raises(LookupError, match=r"no regime named 'gossip'; there are: .*pma"):
        regimes.find("gossip")
