"""amqtt as a process of its own: `python -m coordinator.amqtt_broker PORT`; MQTT 3.1.1, loopback, anonymous.

A convenience for one machine without mosquitto; it keeps nothing on disk.
"""

import asyncio
import logging
import signal
import sys

from coordinator.broker import HOST


async def serve(port: int) -> None:
    """Run until SIGTERM or SIGINT."""
    from amqtt.broker import Broker

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    # Its defaults listen on every address.
    broker = Broker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"{HOST}:{port}"}},
            "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
        }
    )
    await broker.start()
    await stopping.wait()
    await broker.shutdown()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(serve(int(sys.argv[1])))
