"""What every command stands in: its configuration, its link, and how an error ends it. It prints errors only.

Tests hand in an `Outside` of their own as typer's context object.
"""

import functools
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from msgspec import Struct, structs

from coordinator.cleaning import visible
from coordinator.client import (
    ANSWER_SECONDS,
    Client,
    LinkFactory,
    NobodyAnswersError,
    NoBrokerError,
    NotDoneError,
    client_id,
    client_name,
    mqtt_link,
)
from coordinator.commands import exits
from coordinator.commands.exits import CommandError
from coordinator.config import Broker, Config, ConfigError, load
from edged.journal import as_error
from edged.topics import VALID_ID

PROGRAM = "edged-coordinator"

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", envvar="EDGED_COORDINATOR_CONFIG", help="coordinator.toml", show_default=False),
]
BrokerOption = Annotated[
    str | None,
    typer.Option(
        "--broker", metavar="HOST[:PORT]", help="Instead of the configured one.", show_default=False
    ),
]
FleetOption = Annotated[
    str | None, typer.Option("--fleet", help="Instead of the configured one.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", help="Folder of recorded runs; else the configured one.", show_default=False),
]

F = TypeVar("F", bound=Callable[..., Any])


class Outside(Struct, frozen=True):
    """What commands reach the world through: an operator's link, and how long an answer is waited for.

    `tools` is what a coordinator in the foreground works with; None: the real things.
    """

    make_link: LinkFactory = mqtt_link
    answer_seconds: float = ANSWER_SECONDS
    tools: Any = None


def outside(context: typer.Context) -> Outside:
    """The one given as typer's context object, else the real one."""
    return context.obj if isinstance(context.obj, Outside) else Outside()


def settings(config: Path | None, broker: str | None = None, fleet: str | None = None) -> Config:
    """The configuration, with what the command line says instead. Raises ConfigError, CommandError."""
    found = load(config)
    if broker is not None:
        found = structs.replace(found, broker=_broker(found.broker, broker))
    if fleet is not None:
        if not VALID_ID.match(fleet):
            raise CommandError(
                f"--fleet {fleet!r}: a fleet's name has a-z, 0-9, - and _ only, at most 63 characters",
                exits.USAGE,
            )
        found = structs.replace(found, fleet=fleet)
    found.broker.check()
    return found


@contextmanager
def connected(
    context: typer.Context, config: Path | None, broker: str | None, fleet: str | None
) -> Iterator[Client]:
    """A client that is connected to the configured broker."""
    with client_of(outside(context), settings(config, broker, fleet)) as client:
        yield client


def client_of(world: Outside, config: Config) -> Client:
    """A client of the configured broker, not connected yet."""
    name = client_name()
    link_config = config.broker.link(client_id(config.fleet, name))
    client = Client(world.make_link(link_config), link_config, config.fleet, name)
    client.answer_seconds = world.answer_seconds
    return client


def told(command: F) -> F:
    """Errors of the command become one line on standard error and an exit status, never a traceback."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            _finite(options)
            return command(*arguments, **options)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            raise typer.Exit(_complain("interrupted", exits.INTERRUPTED)) from None
        except BrokenPipeError:
            # The reader (`| head`) has seen enough; what is still buffered must not complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(128 + signal.SIGPIPE) from None
        except CommandError as error:
            raise typer.Exit(_complain(str(error), error.status)) from None
        except ConfigError as error:
            raise typer.Exit(_complain(str(error), exits.CONFIG)) from None
        except NoBrokerError as error:
            raise typer.Exit(_complain(str(error), exits.NO_BROKER)) from None
        except NobodyAnswersError as error:
            raise typer.Exit(_complain(str(error), exits.NOBODY)) from None
        except NotDoneError as error:
            raise typer.Exit(_complain(str(error), exits.REFUSED)) from None
        except Exception as error:
            if os.environ.get("EDGED_TRACEBACK"):
                raise
            text = f"a fault of edged: {type(error).__name__}: {error} (EDGED_TRACEBACK=1 shows where)"
            raise typer.Exit(_complain(text, exits.FAULT)) from None

    return run  # type: ignore[return-value]


def _finite(options: Mapping[str, Any]) -> None:
    """`nan` and `inf` are floats to the parser of the command line; no option means them."""
    for name, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise CommandError(f"--{name.replace('_', '-')} {value}: it must be a finite number", exits.USAGE)


def pairs(options: Sequence[str], name: str) -> dict[str, Any]:
    """`key=value` options as a dict; a value is JSON where it is JSON (numbers, true, null), else text."""
    import msgspec

    found: dict[str, Any] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if not equals or not key:
            raise CommandError(f"{name} {option!r}: write it as key=value", exits.USAGE)
        try:
            found[key] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            found[key] = text
    return found


def _broker(configured: Broker, given: str) -> Broker:
    host, colon, port = given.rpartition(":") if ":" in given and not given.endswith("]") else (given, "", "")
    host = host.strip("[]")
    if not host or (colon and not port.isdigit()) or (port and not 1 <= int(port) <= 65535):
        raise CommandError(f"--broker {given!r}: write it as host or host:port, port 1 to 65535", exits.USAGE)
    return structs.replace(configured, host=host, port=int(port) if port else configured.port)


def _complain(text: str, status: int) -> int:
    typer.echo(as_error(f"{PROGRAM}: {visible(text)}"), err=True)
    return status
