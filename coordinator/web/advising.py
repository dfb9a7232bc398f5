"""What other settings would cost, as `edged-coordinator advise` tells it, in a process of its own.

Its arithmetic takes seconds of a core; here it would hold up the coordinator's loop. Hence low priority, too.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

LONGEST_SECONDS: Final = 180.0
NICE: Final = 15


class Adviser:
    """One question at a time; the answer is kept until the run has a further round."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._kept: tuple[tuple[str, int], bytes] | None = None
        self._lock = asyncio.Lock()

    async def advise(self, run: str, newest_round: int) -> bytes:
        """The command's JSON. Raises RuntimeError with its words."""
        async with self._lock:
            if self._kept is not None and self._kept[0] == (run, newest_round):
                return self._kept[1]
            command = [
                sys.executable,
                "-m",
                "coordinator",
                "advise",
                run,
                "--store",
                str(self._store),
                "--json",
            ]
            process = await asyncio.create_subprocess_exec(
                "nice",
                "-n",
                str(NICE),
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            try:
                told, complaint = await asyncio.wait_for(process.communicate(), LONGEST_SECONDS)
            except asyncio.TimeoutError:
                raise RuntimeError(f"no advice within {LONGEST_SECONDS:g} s") from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            answer = _document(told)
            if answer is None:
                raise RuntimeError(_last(complaint))
            self._kept = ((run, newest_round), answer)
            return answer


def _document(told: bytes) -> bytes | None:
    try:
        return told if isinstance(msgspec.json.decode(told), dict) else None
    except msgspec.DecodeError:
        return None


def _last(complaint: bytes) -> str:
    lines = complaint.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("edged-coordinator: ") if lines else "advise said nothing"
