"""What a run learns from reports: of which energy window, and which joules are of one kind."""

import pytest

from coordinator.allocation import Control, chosen, controlled, learn, options_of, settle_account
from coordinator.controller import Weights
from coordinator.pushes import Pusher, Tally, count
from edged.messages import Energy, Part, Parts, Report, Steady

COMPUTED = Part(2.0, 20.0)


def trained(joules: float, scope: str, number: int = 1) -> Report:
    """100 samples in 2 s."""
    energy = Energy(joules, scope=scope, basis="measured", uncertainty_joules=0.1 * joules)
    steady = Steady(100, 2.0, joules)
    return Report("a", "b", f"r.{number}.a.1", "trained", 1, 100, 10, Parts(COMPUTED), energy, steady=steady)


def closed(wait_joules: float, scope: str, number: int = 1) -> Report:
    """The same order with 8 s of waiting."""
    none = Part(0.0, 0.0)
    parts = Parts(COMPUTED, none, Part(8.0, wait_joules), none, none)
    energy = Energy(20.0, scope=scope, basis="measured")
    return Report("a", "b", f"r.{number}.a.1", "closed", 1, 100, 10, parts, energy)


def test_joules_of_the_whole_round_are_those_of_the_last_closed_order() -> None:
    control = Control("adaptive", {}, 0.5, 0.5)
    learn(control, "a", 1, trained(20.0, "wall"), "round")
    assert control.memories["a"].joules_per_sample is None
    settle_account(control, "a", closed(30.0, "wall"))
    learn(control, "a", 2, trained(20.0, "wall", 2), "round")
    memory = control.memories["a"]
    assert (memory.joules_per_sample, memory.basis, memory.scope) == (0.5, "measured", "wall")
    assert memory.relative_uncertainty == pytest.approx(0.1)


def test_joules_of_the_whole_round_keep_the_scope_in_which_they_were_measured() -> None:
    control = Control("adaptive", {}, 0.5, 0.5)
    settle_account(control, "a", closed(30.0, "package"))
    learn(control, "a", 2, trained(60.0, "wall", 2), "round")
    assert (control.memories["a"].joules_per_sample, control.memories["a"].scope) == (0.5, "package")
    settle_account(control, "a", closed(80.0, "wall", 2))
    learn(control, "a", 3, trained(60.0, "wall", 3), "round")
    assert (control.memories["a"].joules_per_sample, control.memories["a"].scope) == (1.0, "wall")


def test_a_period_in_which_the_scope_changed_has_no_joules() -> None:
    tally, pusher = Tally(), Pusher()
    count(tally, pusher, 0, 100, trained(20.0, "wall"))
    assert (tally.steady_joules, tally.unmetered) == (20.0, "")
    count(tally, pusher, 0, 100, trained(9.0, "package", 2))
    count(tally, pusher, 0, 100, trained(9.0, "package", 3))
    assert (tally.steady_joules, tally.unmetered) == (None, "of different scope: wall, package")


def test_weights_among_the_options_are_the_runs_and_can_be_tuned() -> None:
    control = controlled("adaptive", {"w_e": 0.5, "deadband": 0.2}, Weights(1, 0), "pma", "none")
    assert (control.w_t, control.w_e, control.options) == (0.5, 0.5, {"deadband": 0.2})
    control.w_t, control.w_e = 0.75, 0.25
    assert (options_of(control).w_e, options_of(control).w_t) == (0.25, 0.75)
    other = chosen(control, "low-energy", {"w_t": 0.9})
    assert [other.w_t, other.w_e] == pytest.approx([0.9, 0.1])
    with pytest.raises(ValueError, match="policy min-energy has no option w_e"):
        chosen(control, "min-energy", {"w_e": 0.5})
    with pytest.raises(ValueError, match=r"w_e = 2\.0: each weight must be between 0 and 1"):
        chosen(control, "adaptive", {"w_e": 2.0})
