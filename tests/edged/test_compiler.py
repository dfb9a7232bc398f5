"""Training takes the same steps without torch's compiler in memory, and whoever compiles finds it."""

import json
import subprocess
import sys
from typing import Any

import pytest

TRAINS = """
import inspect, json, sys, torch
from edged import compiler, optimizers
from edged.messages import Train
if {defer}:
    compiler.defer()
inspect.getmodule(sys.settrace)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
x = torch.randn(16, 8)
losses = []
for name in ("sgd", "adam", "adamw"):
    fields = dict.fromkeys(Train.__struct_fields__)
    fields.update(optimizer=name, learning_rate=0.05, momentum=0.9, weight_decay=0.01)
    optimizer = optimizers.make(type("Order", (), fields), model)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
{then}
print(json.dumps([losses, "torch._dynamo.eval_frame" in sys.modules]))
"""
COMPILES = """
compiled = torch.compile(model, backend="eager")
assert torch.equal(compiled(x), model(x))
optimizer.step()
import torch._dynamo
assert type(torch._dynamo).__name__ == "module"
"""
IMPORTS_A_PART = "import torch._dynamo.config; assert torch._dynamo.config.verbose is False"


def run(defer: bool, then: str = "") -> Any:
    script = TRAINS.format(defer=defer, then=then)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_same_steps_are_taken_and_the_compiler_stays_away() -> None:
    with_it, compiler_there = run(defer=False)
    without, compiler_came = run(defer=True)
    assert with_it == without
    assert len(without) == 9
    # Should torch stop importing it by itself, the deferral can go.
    assert (compiler_there, compiler_came) == (True, False)


@pytest.mark.parametrize("then", [COMPILES, IMPORTS_A_PART], ids=["compiles", "imports-a-part"])
def test_whoever_wants_the_compiler_finds_it(then: str) -> None:
    _, compiler_came = run(defer=True, then=then)
    assert compiler_came
