"""`python -m edged.checks.torch_child`: imports torch, trains one step, and prints what this build can do.

Runs apart: a wheel for another processor ends its process, and torch's memory goes with it.
"""

from __future__ import annotations

import json
import struct
import sys


def main() -> int:
    """Prints a JSON object; 1 with `error` in it where torch cannot be imported or does not compute."""
    found: dict[str, object] = {"bits": 8 * struct.calcsize("P"), "byteorder": sys.byteorder}
    try:
        import torch
        from torch import distributed

        found["version"] = str(torch.__version__)
        found["gloo"] = distributed.is_available() and distributed.is_gloo_available()
        model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.GroupNorm(2, 4), torch.nn.Flatten(), torch.nn.Linear(144, 8)
        )
        loss = model(torch.ones(4, 1, 8, 8)).square().mean()
        loss.backward()
        found["computes"] = all(
            bool(torch.isfinite(one.grad).all()) for one in model.parameters() if one.grad is not None
        )
    except Exception as error:  # a damaged build raises anything, and the reason is what is wanted
        found["error"] = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(found) + "\n")
    return 1 if "error" in found else 0


if __name__ == "__main__":
    sys.exit(main())
