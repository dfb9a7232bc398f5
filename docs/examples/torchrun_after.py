"""The same, balanced: torchrun --nproc-per-node 3 torchrun_after.py --pace 0.001 0.001 0.004"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from edged.balance import BalancedSampler, balance


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--samples", type=int, default=3072)
    options.add_argument("--pace", type=float, nargs="*", default=[], help="seconds a sample, by rank")
    chosen = options.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    pace = chosen.pace[rank] if rank < len(chosen.pace) else 0.0
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(chosen.samples, 64), torch.randint(10, (chosen.samples,)))
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = BalancedSampler(data, batch_size=96)
    loader = DataLoader(data, batch_sampler=sampler)
    balance(model, optimizer)
    for epoch in range(chosen.epochs):
        sampler.set_epoch(epoch)
        began = time.perf_counter()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            time.sleep(pace * len(x))  # stands in for a slower machine
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {time.perf_counter() - began:.2f} s, this rank's last batch {len(x)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
