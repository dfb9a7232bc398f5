"""A user's loop under torchrun with plain DDP and balanced, epochs of the two by turns in one run.

Prints the ratio of their times beside what the speeds allow:
`python -m benchmarks.balance [--pace 0.001 0.002 0.004] [--pairs 3]` (seconds a sample, by rank).
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

BATCH, STEPS = 96, 24


def loop(pace: float, balanced: bool) -> Callable[[int], float]:
    """An epoch of a loop as a user has it; its seconds."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    from edged.balance import BalancedSampler, balance

    size = BATCH * STEPS
    data = TensorDataset(torch.randn(size, 32), torch.randint(10, (size,)))
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler: BalancedSampler | DistributedSampler[object]
    if balanced:
        sampler = BalancedSampler(data, batch_size=BATCH)
        loader = DataLoader(data, batch_sampler=sampler)
        balance(model, optimizer, sampler)
    else:
        sampler = DistributedSampler(data)
        loader = DataLoader(data, batch_size=BATCH // dist.get_world_size(), sampler=sampler)

    def epoch(number: int) -> float:
        sampler.set_epoch(number)
        dist.barrier()
        began = time.perf_counter()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            time.sleep(pace * len(x))
            torch.autograd.backward(loss)
            optimizer.step()
        dist.barrier()
        return time.perf_counter() - began

    return epoch


def rank(paces: list[float], pairs: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    number = dist.get_rank()
    plain, balanced = loop(paces[number], balanced=False), loop(paces[number], balanced=True)
    times = [(plain(epoch), balanced(epoch)) for epoch in range(pairs + 1)][1:]  # the first is to settle
    before, after = (statistics.median(column) for column in zip(*times, strict=True))
    if number == 0:
        world = len(paces)
        ideal = world / (max(paces) * sum(1 / pace for pace in paces))
        print(f"{world} ranks of {', '.join(f'{pace:g}' for pace in paces)} s a sample, {BATCH} a step")
        print(f"  an epoch: plain {before:.2f} s, balanced {after:.2f} s, ratio {after / before:.3f}")
        print(f"  by the speeds alone, without communication and whole samples: {ideal:.3f}")
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pace", type=float, nargs="+", default=[0.001, 0.002, 0.004])
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    if os.environ.get("LOCAL_RANK"):
        rank(options.pace, options.pairs)
        return
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    command += ["--nproc-per-node", str(len(options.pace)), "-m", "benchmarks.balance", *sys.argv[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
