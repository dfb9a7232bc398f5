"""Optimizers by an order's settings, and their state as named tensors that can travel with the weights.

A state tensor is `optimizer/<what>/<parameter>`; neither a model's own tensors nor files are touched here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from edged.messages import Train

PREFIX = "optimizer/"
GRADIENT = "gradient/"
"""Before a parameter's name, in an update that holds its gradient."""


def make(order: Train, model: torch.nn.Module) -> torch.optim.Optimizer:
    """The order's optimizer over the model's parameters, without a state."""
    import torch

    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if order.optimizer == "sgd":
        return torch.optim.SGD(
            parameters, lr=order.learning_rate, momentum=order.momentum, weight_decay=order.weight_decay
        )
    kind = torch.optim.AdamW if order.optimizer == "adamw" else torch.optim.Adam
    return kind(parameters, lr=order.learning_rate, weight_decay=order.weight_decay)


def tensors(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The state by name, the optimizer's own tensors; empty before its first step."""
    import torch

    found: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        for what, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                found[f"{PREFIX}{what}/{name}"] = value
    return found


def restore(
    optimizer: torch.optim.Optimizer, model: torch.nn.Module, state: Mapping[str, torch.Tensor]
) -> None:
    """Put copies of a state into place. Raises ValueError naming a tensor that fits no parameter."""
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    for full, value in state.items():
        what, _, name = full.removeprefix(PREFIX).partition("/")
        parameter = parameters.get(name)
        if parameter is None or (value.ndim and value.shape != parameter.shape):
            raise ValueError(f"{full}: no parameter of the model has such a state")
        optimizer.state[parameter][what] = value.clone()


def parted(found: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """What a weights file holds: the model's own tensors, and the optimizer state that came with them."""
    model = {name: value for name, value in found.items() if not name.startswith(PREFIX)}
    return model, {name: value for name, value in found.items() if name.startswith(PREFIX)}
