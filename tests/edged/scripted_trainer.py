"""A training child without torch, for the agent's tests: speaks the words, writes a small update, does
no work.

The job's task options choose what goes wrong: {"do": "exit" | "signal" | "fail" | "hang" | "garbage" |
"wait"}.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import msgspec

from edged.work import Asked, Begun, Cancel, Failed, Finished, Job, Prepared, Ready, Stepped, Word

CANCELLED: set[str] = set()


def tell(word: Word) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(word) + b"\n")
    sys.stdout.flush()


def train(job: Job) -> Word:
    order = job.order.order
    do = job.order.options.get("do", "")
    if do == "fail":
        return Failed(order, "the loss is nan at step 3 of 5")
    tell(Prepared(order, job.seconds_per_sample))
    tell(Begun(order, time.monotonic()))
    tell(Stepped(order, job.order.samples // 2))
    if do == "exit":
        os._exit(3)
    elif do == "signal":
        os.kill(os.getpid(), signal.SIGILL)
    elif do == "garbage":
        sys.stdout.buffer.write(b"{not a word\n")
    while do == "hang" or (do == "wait" and order not in CANCELLED):
        time.sleep(0.01)
    if order in CANCELLED:
        return Failed(order, "cancelled")
    began = time.monotonic()
    time.sleep(0.01)
    Path(job.update).write_bytes(b"update of " + order.encode() * 100)
    return Finished(
        order=order,
        at_seconds=time.monotonic(),
        samples=job.order.samples,
        steps=5,
        loss_sum=12.5,
        metrics={"correct": 3.0},
        steady_samples=job.order.samples // 2,
        steady_at_seconds=began,
        peak_memory_bytes=1 << 20,
        behind_pace_steps=0,
    )


def main() -> None:
    jobs: list[Job] = []
    arrived = threading.Semaphore(0)

    def read() -> None:
        for line in sys.stdin.buffer:
            asked = msgspec.json.decode(line, type=Asked)
            if isinstance(asked, Cancel):
                CANCELLED.add(asked.order)
            elif isinstance(asked, Job):
                jobs.append(asked)
                arrived.release()
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    tell(Ready("none"))
    while True:
        arrived.acquire()
        tell(train(jobs.pop(0)))


if __name__ == "__main__":
    main()
