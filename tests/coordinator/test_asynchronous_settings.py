"""Settings of asynchronous runs that cannot be are refused by name, before anything begins."""

import re
from typing import Any

import pytest

from coordinator.events import Prepared
from coordinator.run import begin
from edged.controls import AsynchronousSettings
from tests.coordinator.play import MODEL, settings


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"asynchronous": {"grain": "epoch"}}, "grain is gradient or model, not 'epoch'"),
        ({"asynchronous": {"staleness": "fresh"}}, "no staleness rule 'fresh'; there are consgd"),
        ({"asynchronous": {"staleness": "ssp", "staleness_options": {"ahead": 0}}}, "it must be at least 1"),
        ({"asynchronous": {"scale": "log"}}, "scale is batch or none, not 'log'"),
        ({"asynchronous": {"grain": "model", "alpha": 0.0}}, "alpha = 0.0: it must be above 0"),
        ({"asynchronous": {"momentum": 1.0}}, "momentum must be at least 0 and below 1, not 1.0"),
        ({"asynchronous": {"grain": "model", "momentum": 0.5}}, "momentum is for grain gradient"),
        ({"momentum": 0.9}, "give the coordinator's (--server-momentum)"),
        ({"optimizer": "adam"}, "give optimizer sgd with a learning rate for it, or take grain model"),
        ({"optimizer_state": "average"}, "optimizer_state average does not work with grain gradient"),
        ({"batch": 2000}, "batch 2000 is larger than the 1000 samples of a period"),
        ({"policy": "adaptive"}, "policy adaptive is for pma, ddp, hfl-ddp, not for asp"),
        ({"regime": "pma"}, "are for regime asp, not for pma"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(changes: dict[str, Any], text: str) -> None:
    given = {"regime": "asp", "policy": "equal", "asynchronous": {}, **changes}
    asynchronous = AsynchronousSettings(**given.pop("asynchronous"))
    with pytest.raises(ValueError, match=re.escape(text)):
        begin(Prepared("r", settings(asynchronous=asynchronous, **given), "h", MODEL, "f", 5000), 1, "c")


def test_a_large_model_is_refused_for_gradients_unless_it_is_asked_for() -> None:
    large = type(MODEL)(9_000_000, 1000, "a" * 64)

    def begun(**asynchronous: Any) -> str:
        chosen = settings(regime="asp", policy="equal", asynchronous=AsynchronousSettings(**asynchronous))
        return begin(Prepared("r", chosen, "h", large, "f", 5000), 1, "c").phase

    with pytest.raises(ValueError, match=r"9,000,000 bytes.*--grain model, or --allow-large"):
        begun()
    assert begun(allow_large=True) == begun(grain="model") == "gathering"
