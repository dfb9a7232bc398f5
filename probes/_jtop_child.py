"""The jtop probe's child process: prints the service's rails as JSON, a line a second.

Runs apart because the client forces a start method on its process and may raise at any version step.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def status(error: BaseException) -> str:
    """What an error of the client means to the probe."""
    text = str(error).lower()
    if "permission" in text or "access" in text or isinstance(error, PermissionError):
        return "denied"
    if "active" in text or "service" in text or isinstance(error, (FileNotFoundError, ConnectionError)):
        return "stale"
    return "invalid"


def main() -> int:
    try:
        from jtop import jtop
    except ImportError:
        say(error="jetson-stats is not installed", status="absent")
        return 1
    except Exception as error:
        say(error=f"jetson-stats does not import: {error}", status="invalid")
        return 1
    try:
        with jtop(1.0) as client:
            while client.ok():
                say(rail=client.power.get("rail", {}))
                time.sleep(0.1)  # ok() itself waits for the next second's values
    except BrokenPipeError:
        return 0
    except Exception as error:
        say(error=f"jtop: {str(error) or type(error).__name__}", status=status(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
