"""What a sample, a step and an exchange of published networks cost a worker: cost PROFILES, no measurements.

Relative figures of public counts: multiply-adds of a forward pass over one 224 x 224 picture and parameters,
both from torchvision's documentation of its ImageNet weights (docs.pytorch.org/vision: "GFLOPS", where a
multiply-add counts once, and "num_params"). The machine is assumed.
"""

from typing import Final

from msgspec import Struct

CORE_FLOPS: Final = 20e9
"""Floating-point operations a second that a core is assumed to reach; speed is taken as linear in cores."""
MEMORY_BYTES_PER_SECOND: Final = 10e9
"""Assumed of a worker's optimizer, which is bound by memory and not by cores."""
LINK_BYTES_PER_SECOND: Final = 1e9
"""Assumed between containers of one host."""
CORE_WATTS: Final = 4.0
"""Invented, of a busy core, as in the fleets hl1 to hl8."""
WORKER_WATTS: Final = 20.0
"""Invented, of a worker that waits."""
PASSES: Final = 3
"""Forward, and backward at twice its operations."""
UPDATE_TOUCHES: Final = 5
"""Of each parameter in a step with momentum: gradient, momentum and weight read, the last two written."""
PARAMETER_BYTES: Final = 4


class Profile(Struct, frozen=True):
    """A network: multiply-adds of a forward pass over one sample, and parameters."""

    name: str
    multiply_adds: float
    parameters: int

    def seconds_per_sample(self, cores: float) -> float:
        """Forward and backward."""
        return 2 * PASSES * self.multiply_adds / (cores * CORE_FLOPS)

    @property
    def model_bytes(self) -> int:
        """Of the weights, and of a gradient."""
        return self.parameters * PARAMETER_BYTES

    @property
    def update_seconds(self) -> float:
        """The optimizer's part of a step, whatever its batch."""
        return self.model_bytes * UPDATE_TOUCHES / MEMORY_BYTES_PER_SECOND

    @property
    def transfer_seconds(self) -> float:
        """A model or a gradient, one way."""
        return self.model_bytes / LINK_BYTES_PER_SECOND

    def exchange_seconds(self, workers: int) -> float:
        """A ring all-reduce: each link carries 2 (K - 1) / K of the gradient."""
        return 2 * (workers - 1) / workers * self.transfer_seconds


PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile("resnet18", 1.81e9, 11_689_512),
        Profile("alexnet", 0.71e9, 61_100_840),
        Profile("vgg11", 7.61e9, 132_863_336),
        Profile("resnet50", 4.09e9, 25_557_032),
    )
}
