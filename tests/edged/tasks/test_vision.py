"""The published networks at small pictures: their sizes, and batches of one."""

import pytest
import torch

from edged import tasks
from edged.tasks import TaskError, _vision, cifar10, mnist

# Parameters of the usual CIFAR-10 variants of ResNet18 and ResNet50; for AlexNet and VGG11 by hand from the
# plan: weights of 3x3 convolutions without bias, two per channel of each norm, and the last linear layer.
PARAMETERS = {"resnet18": 11_173_962, "resnet50": 23_520_842, "alexnet": 2_255_306, "vgg11": 9_228_362}


@pytest.mark.parametrize("name", _vision.NAMES)
@pytest.mark.parametrize("norm", ["group", "batch"])
def test_networks_have_their_published_size(name: str, norm: _vision.Norm) -> None:
    with torch.device("meta"):
        network = _vision.build(name, 3, 10, norm)
        assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert sum(p.numel() for p in network.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", _vision.NAMES)
def test_one_picture_alone_can_be_trained_on(name: str) -> None:
    with torch.device("meta"):
        assert _vision.build(name, 1, 10, "group").train()(torch.zeros(1, 1, 28, 28)).shape == (1, 10)


def test_the_model_is_an_option_of_the_task() -> None:
    with torch.device("meta"):
        options = tasks.options_of(tasks.find("mnist"), {"model": "alexnet"}, strict=False)
        assert sum(p.numel() for p in mnist.model(options, 0).parameters()) > 2_000_000
        names = [type(m).__name__ for m in cifar10.model(cifar10.Options("vgg11", "batch"), 0).modules()]
        assert "BatchNorm2d" in names
    with pytest.raises(TaskError, match=r"Invalid enum value 'resnet19' - at `\$.model`"):
        tasks.options_of(tasks.find("cifar10"), {"model": "resnet19"})
