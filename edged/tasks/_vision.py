"""ResNet18, ResNet50, AlexNet and VGG11 for small pictures (28 or 32 pixels), with GroupNorm unless told.

The shapes of the published networks with a stem for small pictures: no stride or pooling before the first
stage, and a mean over the last map in place of the large linear layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import torch

Name = Literal["resnet18", "resnet50", "alexnet", "vgg11"]
NAMES: tuple[str, ...] = get_args(Name)
Norm = Literal["group", "batch"]
"""BatchNorm is there to reproduce others' figures; it refuses batches of one (ALGORITHMS 5.4)."""
GROUPS = 32


def build(name: str, channels: int, classes: int, norm: Norm) -> torch.nn.Module:
    """Pictures float32 (n, channels, side, side) to logits (n, classes)."""
    from torch import nn

    def normed(width: int) -> torch.nn.Module:
        return nn.GroupNorm(min(GROUPS, width), width) if norm == "group" else nn.BatchNorm2d(width)

    if name == "resnet18":
        return _resnet((2, 2, 2, 2), False, channels, classes, normed)
    if name == "resnet50":
        return _resnet((3, 4, 6, 3), True, channels, classes, normed)
    if name == "alexnet":
        plan: tuple[int | str, ...] = (64, "pool", 192, "pool", 384, 256, 256, "pool")
        return _plain(plan, channels, classes, normed, dropout=0.5)
    if name == "vgg11":
        plan = (64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512)
        return _plain(plan, channels, classes, normed, dropout=0.0)
    raise ValueError(f"no model {name!r}; there are {', '.join(NAMES)}")


def _plain(
    plan: tuple[int | str, ...],
    channels: int,
    classes: int,
    normed: Callable[[int], torch.nn.Module],
    dropout: float,
) -> torch.nn.Module:
    from torch import nn

    layers: list[torch.nn.Module] = []
    width = channels
    for step in plan:
        if isinstance(step, str):
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(width, step, 3, padding=1, bias=False), normed(step), nn.ReLU()]
            width = step
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(width, classes)]
    return nn.Sequential(*layers, *head)


def _resnet(
    depths: tuple[int, ...],
    bottleneck: bool,
    channels: int,
    classes: int,
    normed: Callable[[int], torch.nn.Module],
) -> torch.nn.Module:
    import torch
    from torch import nn

    class Block(nn.Module):
        """A residual block: two 3x3 convolutions, or 1x1, 3x3, 1x1 with four times the width at the end."""

        def __init__(self, into: int, width: int, stride: int) -> None:
            super().__init__()
            out = 4 * width if bottleneck else width
            if bottleneck:
                shapes = [(into, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
            else:
                shapes = [(into, width, 3, stride), (width, out, 3, 1)]
            body: list[torch.nn.Module] = []
            for a, b, kernel, step in shapes:
                convolution = nn.Conv2d(a, b, kernel, step, padding=kernel // 2, bias=False)
                body += [convolution, normed(b), nn.ReLU()]
            self.body = nn.Sequential(*body[:-1])
            # A block begins as its shortcut: the first steps of a deep network overshoot otherwise.
            nn.init.zeros_(next(body[-2].parameters()))
            same = into == out and stride == 1
            projection = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), normed(out))
            self.shortcut = nn.Identity() if same else projection

        def forward(self, maps: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.body(maps) + self.shortcut(maps))

    stages: list[torch.nn.Module] = [nn.Conv2d(channels, 64, 3, padding=1, bias=False), normed(64), nn.ReLU()]
    into = 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        for place in range(depth):
            stages.append(Block(into, width, 2 if stage and not place else 1))
            into = 4 * width if bottleneck else width
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, classes))
