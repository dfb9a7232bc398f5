"""One network namespace a board, all on one bridge of this machine: boards whose networks are apart."""

import os
import shutil
import subprocess
from pathlib import Path


def bridges_work() -> bool:
    """Whether this user of this machine may make namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"edt{os.getpid() % 100000}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made.returncode == 0


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class Bridge:
    """Gone when closed."""

    def __init__(self, boards: list[str]) -> None:
        self.name, self.boards = f"edb{os.getpid() % 100000}", boards
        # A network for each process of tests: two bridges with the same one would take each other's packets.
        self.network = f"10.{64 + os.getpid() // 256 % 128}.{os.getpid() % 256}"
        ip("link", "add", self.name, "type", "bridge")
        ip("addr", "add", f"{self.network}.1/24", "dev", self.name)
        ip("link", "set", self.name, "up")
        for number, board in enumerate(boards):
            space, inside, outside = self.space(board), f"{self.name}i{number}", f"{self.name}o{number}"
            ip("netns", "add", space)
            ip("link", "add", outside, "type", "veth", "peer", "name", inside)
            ip("link", "set", inside, "netns", space)
            ip("link", "set", outside, "master", self.name, "up")
            ip("-n", space, "addr", "add", f"{self.network}.{number + 2}/24", "dev", inside)
            ip("-n", space, "link", "set", inside, "up")
            ip("-n", space, "link", "set", "lo", "up")

    def space(self, board: str) -> str:
        return f"{self.name}-{board}"

    def moved(self, board: str) -> tuple[int, int]:
        """Bytes that the board has sent and received."""
        folder = Path(f"/sys/class/net/{self.name}o{self.boards.index(board)}/statistics")
        return int((folder / "rx_bytes").read_text()), int((folder / "tx_bytes").read_text())

    def close(self) -> None:
        for number, board in enumerate(self.boards):
            subprocess.run(["ip", "link", "del", f"{self.name}o{number}"], check=False)
            subprocess.run(["ip", "netns", "del", self.space(board)], check=False)
        subprocess.run(["ip", "link", "del", self.name], check=False)

    def address(self, board: str) -> str:
        """Of the board; the machine itself is .1."""
        return f"{self.network}.{self.boards.index(board) + 2}"
