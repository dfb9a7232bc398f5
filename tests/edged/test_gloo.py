"""What is said of gloo's errors, and of networks that it cannot use; groups stand in test_ddp."""

import socket
from datetime import timedelta
from typing import Any

import pytest

from edged.gloo import in_words, served, set_timeout
from edged.groups import Peer
from edged.reach import interface_of, listen, reach
from edged.regimes import PeerError, TrainingError

CLOSED = (
    "Got the following error when running the callback: RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/"
    "gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.5]:30896. This is typically caused by "
    "a remote worker crashing. Check the logs of the remote worker."
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CLOSED, "Connection closed by peer [10.0.0.5]:30896"),
        (
            "[/x/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 30000ms for recv operation",
            "Timed out waiting 30000ms for recv operation",
        ),
        ("wait timeout after 60000ms,\n keys: /g1/0/0", "wait timeout after 60000ms, keys: /g1/0/0"),
    ],
)
def test_an_error_of_gloo_is_told_without_places_in_its_source(text: str, words: str) -> None:
    assert in_words(RuntimeError(text)) == words


def test_the_loopback_interface_is_found_for_any_of_its_addresses() -> None:
    assert interface_of("127.0.0.1") == interface_of("127.0.0.77") == "lo"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("fe80::1", "gradients need an IPv4 address towards the broker, this board has fe80::1"),
        ("", "this board has none"),
        ("192.0.2.7", "no network interface has the address 192.0.2.7 any more"),
    ],
)
def test_an_address_that_is_not_this_boards_is_named(address: str, text: str) -> None:
    with pytest.raises(TrainingError, match=text):
        interface_of(address)


def test_who_listens_is_reached_and_who_does_not_is_named_with_the_pair() -> None:
    with listen("127.0.0.1") as mine, listen("127.0.0.1") as other:
        peers = [Peer("127.0.0.1", sock.getsockname()[1]) for sock in (mine, other)]
        reach(peers, ("pi4", "pi5"), 0)
        dead = [*peers, Peer("127.0.0.1", 1)]
        with pytest.raises(
            PeerError, match=r"pi4 cannot reach n100 at 127.0.0.1:1 \(Connection refused\)"
        ) as told:
            reach(dead, ("pi4", "pi5", "n100"), 0, 0.1)
        assert told.value.blames == ("n100",)


def test_an_address_of_another_machine_cannot_be_listened_at() -> None:
    with pytest.raises(TrainingError, match=r"cannot listen at 192.0.2.7"):
        listen("192.0.2.7")


def test_a_store_that_can_take_no_socket_listens_anew_at_the_same_port() -> None:
    """A torch without `master_listen_fd`."""

    def older(*, port: int) -> socket.socket:
        return socket.create_server(("127.0.0.1", port))

    def newer(*, master_listen_fd: int) -> socket.socket:
        return socket.socket(fileno=master_listen_fd)

    with listen("127.0.0.1") as listener:
        port = listener.getsockname()[1]
        with served(newer, listener) as store:
            assert store.getsockname()[1] == port
        with served(lambda **more: older(port=port, **more), listener) as store:
            assert store.getsockname()[1] == port


def test_a_torch_that_cannot_change_a_time_out_says_so() -> None:
    class Backend:
        seconds = 0.0

        def _set_default_timeout(self, limit: timedelta) -> None:
            self.seconds = limit.total_seconds()

    class Group:
        def __init__(self, backend: Any) -> None:
            self.backend = backend

        def _get_backend(self, device: Any) -> Any:
            return self.backend

    backend = Backend()
    assert set_timeout(Group(backend), 7)
    assert backend.seconds == 7
    assert not set_timeout(Group(object()), 7)
    assert not set_timeout(object(), 7)
