"""A model in chunks over mosquitto on loopback: one publisher, four subscribers, each a process of its own.

Prints bytes, seconds, rate and memory of each: `python -m benchmarks.link [--megabytes 40] [--readers 4]`.
"""

import argparse
import hashlib
import multiprocessing
import os
import resource
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from coordinator.broker import start_broker
from edged.link import Delivered, LinkConfig, Message, Up
from edged.messages import Manifest
from edged.paho_link import PahoLink
from edged.transfers import Incoming, Outgoing, Sender, describe

MEBIBYTE = 1024 * 1024


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def read(port: int, path: Path, manifest: Manifest, pipe: Connection) -> None:
    """A board: collect the model into a file, check it, and say when and at what cost."""
    link = PahoLink(LinkConfig("127.0.0.1", port, f"reader-{path.name}"))
    link.subscribe("model/+")
    link.start()
    while not isinstance(link.events.get(timeout=30), Up):
        pass
    before = peak_bytes()
    pipe.send("up")
    arriving = Incoming(path, manifest)
    while not arriving.complete:
        event = link.events.get(timeout=30)
        if isinstance(event, Message):
            arriving.write(int(event.topic.rsplit("/", 1)[1]), event.payload)
    arriving.finish()
    pipe.send((time.monotonic(), before, peak_bytes(), time.process_time()))
    link.close()


def publish(port: int, path: Path, manifest: Manifest) -> tuple[float, int]:
    """The coordinator: 8 chunks in flight. Returns when it began and the bytes published."""
    link = PahoLink(LinkConfig("127.0.0.1", port, "writer"))
    link.start()
    while not isinstance(link.events.get(timeout=30), Up):
        pass
    outgoing = Outgoing(path, manifest)
    sender = Sender(
        outgoing, lambda number, payload: link.publish(f"model/{number}", payload, priority="chunk")
    )
    begun = time.monotonic()
    sender.grant([(0, manifest.chunks)])
    while not sender.idle:
        event = link.events.get(timeout=30)
        if isinstance(event, Delivered):
            sender.settled(event.token)
    outgoing.close()
    link.close()
    return begun, sender.sent_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--readers", type=int, default=4)
    arguments = parser.parse_args()
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        broker = start_broker(directory / "broker")
        model = directory / "model"
        with model.open("wb") as file:
            for _ in range(arguments.megabytes):
                file.write(os.urandom(1_000_000))
        manifest = describe(model)
        pipes = []
        readers = []
        for number in range(arguments.readers):
            ours, theirs = processes.Pipe()
            reader = processes.Process(
                target=read, args=(broker.port, directory / f"copy{number}", manifest, theirs)
            )
            reader.start()
            pipes.append(ours)
            readers.append(reader)
        for pipe in pipes:
            pipe.recv()
        before = peak_bytes()
        begun, sent_bytes = publish(broker.port, model, manifest)
        after = peak_bytes()
        results = [pipe.recv() for pipe in pipes]
        for reader in readers:
            reader.join()
        seconds = max(result[0] for result in results) - begun
        digests = {
            hashlib.sha256((directory / f"copy{number}").read_bytes()).hexdigest()
            for number in range(arguments.readers)
        }
        assert digests == {manifest.sha256}
        broker.stop()
    delivered = sent_bytes * arguments.readers
    print(f"broker      {broker}")
    print(
        f"model       {sent_bytes:,} bytes, {manifest.chunks} chunks of {manifest.chunk_bytes:,}, sent once"
    )
    print(f"delivered   {delivered:,} bytes to {arguments.readers} readers, checked and renamed")
    print(f"seconds     {seconds:.2f} (publish of the first chunk to the last reader's checked file)")
    print(f"rate        {delivered / seconds / 1e6:.0f} MB/s delivered")
    grown = (after - before) / MEBIBYTE
    print(f"publisher   peak RSS {after / MEBIBYTE:.1f} MiB, {grown:.1f} MiB of it by sending")
    for number, (_, start, peak, cpu_seconds) in enumerate(results):
        grown = (peak - start) / MEBIBYTE
        print(
            f"reader {number}    peak RSS {peak / MEBIBYTE:.1f} MiB, {grown:.1f} MiB of it by receiving; "
            f"{cpu_seconds:.2f} CPU s"
        )


if __name__ == "__main__":
    main()
