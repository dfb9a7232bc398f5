"""Making a paho client and connecting it, with the stage named at which it fails: DNS, TCP or TLS.

Passwords and certificates are read anew each time.
"""

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from edged.link import LinkConfig, StageName

ProtocolVersion: TypeAlias = Literal["5", "3.1.1"]
VersionDoubt: TypeAlias = Literal["fine", "doubtful", "wrong"]

SILENT_CLOSE = (
    "the broker closed the connection without an answer: it may refuse this MQTT version, "
    "or the user name and password"
)


class SessionError(Exception):
    """The connection is over. `version` says whether the MQTT version may or must be why."""

    def __init__(self, stage: StageName, reason: str, version: VersionDoubt = "fine") -> None:
        super().__init__(reason)
        self.stage = stage
        self.reason = reason
        self.version = version


def make_client(config: LinkConfig, protocol: ProtocolVersion) -> paho.Client:
    """A client with a clean session that neither queues nor reconnects by itself."""
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=config.client_id,
        clean_session=True if protocol == "3.1.1" else None,
        protocol=paho.MQTTv5 if protocol == "5" else paho.MQTTv311,
        reconnect_on_failure=False,
    )
    client.connect_timeout = config.connect_seconds
    client.max_inflight_messages_set(0)
    return client


def connect(client: paho.Client, config: LinkConfig, entered: Callable[[StageName], None]) -> None:
    """Look up the name, connect, secure the line and send CONNECT. Raises SessionError."""
    entered("DNS")
    try:
        socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SessionError("DNS", f"the name does not resolve: {error}") from error
    _use_credentials(client, config)
    entered("TCP")
    try:
        client.connect(config.host, config.port, config.keepalive_seconds)
    except ssl.SSLError as error:
        raise SessionError("TLS", f"no secure connection: {error}") from error
    except OSError as error:
        # Once TCP is up only the handshake can be reset or time out; a refusal is TCP's own.
        in_handshake = config.tls and ("handshake" in str(error) or isinstance(error, ConnectionResetError))
        raise SessionError("TLS" if in_handshake else "TCP", f"no connection: {error}") from error
    line: Any = client.socket()
    if line is not None:
        # Our own small words must not wait for an acknowledgement either.
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def closed(config: LinkConfig, stage: StageName, told: str) -> SessionError:
    """What it means that the line is closed at this stage; `told` is the broker's word about it, if any."""
    if stage == "CONNACK":
        return SessionError(stage, SILENT_CLOSE, "doubtful")
    if stage == "up" and not told:
        stage = "TLS" if config.tls else "TCP"  # all above it was well
    return SessionError(stage, told or "the connection was lost")


def read(client: paho.Client, more: Callable[[], bool]) -> MQTTErrorCode:
    """Read the packets that have come, as long as `more`; paho looks at one or two at a time.

    A broker that leaves Nagle's algorithm on (mosquitto's default) holds its next word back until the last
    is acknowledged, which a kernel delays by 40 ms. The kernel forgets the wish not to, so it is said at each
    read.
    """
    line: Any = client.socket()
    quick = getattr(socket, "TCP_QUICKACK", None)  # Linux
    if line is not None and quick is not None:
        line.setsockopt(socket.IPPROTO_TCP, quick, 1)
    code = client.loop_read()
    while not code and more():
        code = client.loop_read()
    return code


def _use_credentials(client: paho.Client, config: LinkConfig) -> None:
    if config.username is not None:
        password = None
        if config.password_file is not None:
            try:
                password = Path(config.password_file).read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeError) as error:
                raise SessionError("CONNACK", f"the password file cannot be read: {error}") from error
        client.username_pw_set(config.username, password)
    if config.tls:
        try:
            client.tls_set(config.ca_file, config.certificate_file, config.key_file)
        except (OSError, ValueError) as error:
            files = ", ".join(filter(None, (config.ca_file, config.certificate_file, config.key_file)))
            raise SessionError("TLS", f"the certificates ({files}) cannot be used: {error}") from error
