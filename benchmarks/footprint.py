"""What a daemon and its command cost: `edged --help` against importing torch, memory of an idle agent.

CPU seconds, not wall: they are steadier on a busy machine. Prints the ratio; the limit is 0.5.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from coordinator.broker import start_broker

REPEATS = 5
HELP_LIMIT = 0.5
AGENT_LIMIT_BYTES = 40e6


def cpu_seconds(*command: str) -> float:
    """User and system seconds of a command, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def agent_bytes() -> int:
    """Resident memory of a board's daemon that has been connected for some seconds."""
    with tempfile.TemporaryDirectory() as folder:
        broker = start_broker(Path(folder))
        place = f"{broker.host}:{broker.port}"
        command = [sys.executable, "-m", "edged", "run", "--board", "bench", "--broker", place]
        command += ["--pool", "digits=builtin", "--runtime", folder, "--log-level", "error"]
        daemon = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            time.sleep(6.0)
            status = Path(f"/proc/{daemon.pid}/status").read_text()
        finally:
            daemon.terminate()
            daemon.wait()
            broker.stop()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def main() -> None:
    """Print both figures with their limits."""
    shown = median(cpu_seconds("-m", "edged", "--help") for _ in range(REPEATS))
    torch = median(cpu_seconds("-c", "import torch") for _ in range(REPEATS))
    print(f"edged --help {shown:.2f} s CPU, import torch {torch:.2f} s CPU")
    print(f"edged --help / import torch: {shown / torch:.2f} (limit {HELP_LIMIT})")
    memory = agent_bytes()
    print(f"idle agent {memory / 1e6:.1f} MB resident: {memory / AGENT_LIMIT_BYTES:.2f} of its limit")


if __name__ == "__main__":
    main()
