"""The coordinator's settings: a TOML file checked key by key, with the environment for what systemd gives.

It opens no store and no connection. Run settings (task, budget, policy) are the operator's, not here.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from coordinator.aggregate import NORM_BOUND
from coordinator.alerts import AlertOptions
from coordinator.checkpoints import KEEP
from coordinator.telemetry.settings import TOKEN_VARIABLE, TelemetryOptions
from coordinator.web.settings import LISTEN, WebOptions
from coordinator.wording import dotted
from edged.config import CREDENTIAL
from edged.fields import Id
from edged.link import LinkConfig
from edged.tasks import FOLDER

PATH: Final = Path("/etc/edged/coordinator.toml")
EXIT_CONFIG: Final = 78
"""Exit status for a faulty configuration (EX_CONFIG): systemd does not restart into it."""


class ConfigError(ValueError):
    """The configuration cannot be used; the text names the file, the key and what was expected."""


class Broker(Struct, frozen=True, forbid_unknown_fields=True):
    """[broker]: where the fleet meets. TLS is on when a CA file is given."""

    host: str = "localhost"
    port: Annotated[int, Meta(ge=1, le=65535)] = 1883
    username: str | None = None
    password_file: str | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    keepalive_seconds: Annotated[int, Meta(ge=5, le=3600)] = 60

    def link(self, client_id: str, environment: Mapping[str, str] = os.environ) -> LinkConfig:
        """The same as a link takes it; the service's credential stands in for a password file."""
        credential = Path(environment.get("CREDENTIALS_DIRECTORY", "")) / CREDENTIAL
        given = "CREDENTIALS_DIRECTORY" in environment and credential.exists()
        return LinkConfig(
            host=self.host,
            port=self.port,
            client_id=client_id,
            username=self.username,
            password_file=self.password_file or (str(credential) if given else None),
            tls=self.ca_file is not None,
            ca_file=self.ca_file,
            certificate_file=self.certificate_file,
            key_file=self.key_file,
            keepalive_seconds=self.keepalive_seconds,
        )

    def check(self) -> None:
        """Raises ConfigError for a file that is named here and cannot be read."""
        for name in ("password_file", "ca_file", "certificate_file", "key_file"):
            path = getattr(self, name)
            try:
                if path is not None:
                    Path(path).open("rb").close()
            except OSError as error:
                raise ConfigError(f"broker.{name}: {path}: {error.strerror}") from None


class StoreOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """[store]: the folder of runs, and how many model versions of a run stay (0: all)."""

    folder: str = ""
    keep_checkpoints: Annotated[int, Meta(ge=0)] = KEEP


class Tasks(Struct, frozen=True, forbid_unknown_fields=True):
    """[tasks]: where the owner's own task files lie."""

    folder: str = str(FOLDER)


class Pool(Struct, frozen=True, forbid_unknown_fields=True):
    """[data.NAME]: the coordinator's copy of a pool, for held-out figures; training needs none here."""

    path: str


class Silo(Struct, frozen=True, forbid_unknown_fields=True):
    """[silo.NAME]: who trains together in hfl-ddp, on how many samples a round, on which pool."""

    boards: tuple[Id, ...] = ()
    budget: Annotated[int, Meta(ge=1)] | None = None
    pool: Id | None = None


class Updates(Struct, frozen=True, forbid_unknown_fields=True):
    """[updates]: how far an update may move the model, and how many boards upload at once."""

    norm_bound: Annotated[float, Meta(gt=0)] = NORM_BOUND
    boards_at_once: Annotated[int, Meta(ge=1, le=4)] = 4


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """All of coordinator.toml."""

    fleet: Id = "main"
    broker: Broker = Broker()
    store: StoreOptions = StoreOptions()
    tasks: Tasks = Tasks()
    data: dict[Id, Pool] = {}
    updates: Updates = Updates()
    silo: dict[Id, Silo] = {}
    telemetry: TelemetryOptions = TelemetryOptions()
    web: WebOptions = WebOptions()
    alerts: AlertOptions = AlertOptions()

    def store_folder(self, environment: Mapping[str, str] = os.environ) -> Path:
        """The configured folder, else systemd's STATE_DIRECTORY, else one in the user's home."""
        if self.store.folder:
            return Path(self.store.folder).expanduser()
        given = environment.get("STATE_DIRECTORY", "").partition(":")[0]
        if given:
            return Path(given)
        home = environment.get("XDG_STATE_HOME") or "~/.local/state"
        return (Path(home) / "edged-coordinator").expanduser()


SAMPLE: Final = f"""\
# edged-coordinator: /etc/edged/coordinator.toml. Every key may be left out; the values here are the defaults.

# Boards and coordinator of one fleet meet below edged/v1/<fleet>.
fleet = "main"

[broker]
host = "localhost"
port = 1883
keepalive_seconds = 60
# username = "coordinator"
# password_file = "/etc/edged/password"
# ca_file = "/etc/edged/ca.crt"            # given: the connection is encrypted
# certificate_file = "/etc/edged/coordinator.crt"
# key_file = "/etc/edged/coordinator.key"

[store]
# folder = "/var/lib/edged-coordinator"    # else STATE_DIRECTORY, else ~/.local/state/edged-coordinator
keep_checkpoints = {KEEP}                       # newest model versions of a run, and its last; 0: all

[tasks]
folder = "{FOLDER}"

[updates]
# An update may move the parameters (root mean square) by so many times (1 + that of the model).
norm_bound = {NORM_BOUND:.1f}
boards_at_once = 4                       # that upload

# Silos of regime hfl-ddp: boards that train together, over gloo, on data of their own. A board may also
# announce its silo itself (board.silo).
# [silo.attic]
# boards = ["pi4", "pi5"]
# budget = 600                             # samples a round, else in proportion to the silo's data
# pool = "attic-mnist"                     # else the run's pool

# A copy of a pool here gives held-out loss and accuracy after each round.
# [data.mnist]
# path = "/srv/data/mnist"
# [data.digits]
# path = "builtin"

[telemetry]
# url = "http://127.0.0.1:8086"            # an InfluxDB; given: time series are sent there
api = "auto"                             # v1, v2, v3; auto asks the server
database = "edged"
retention_days = 90                      # what `telemetry setup` makes; 0: for ever
# retention_policy = "edged"               # 1.x; else the default one
# org = "lab"                              # 2.x
# bucket = "edged"                         # 2.x; else the name of the database
# token_file = "/etc/edged/influx-token"   # 2.x and 3.x; or the variable {TOKEN_VARIABLE}
# username = "edged"                       # 1.x
# password_file = "/etc/edged/influx-password"
power_seconds = 0.0                      # at most one reading of a board's watts in so many; 0.0: all
spool_bytes = {256 << 20}                  # what may wait on the disk; the oldest watts go first
close_seconds = 5.0

[web]
listen = "{LISTEN}"                # the live page; "off": none. Any address but loopback wants a token
# token_file = "/etc/edged/web-token"

[alerts]
# command = ["/usr/local/bin/notify"]      # gets each alert as JSON on its standard input
silent_seconds = 30.0                    # a board that takes part and says nothing
spool_share = 0.5                        # of spool_bytes
"""


def load(path: Path | None = None) -> Config:
    """The settings of `path`, or of /etc/edged/coordinator.toml where that exists, else the defaults."""
    if path is None and not PATH.exists():
        return Config()
    path = path or PATH
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def parse(text: bytes, name: str) -> Config:
    """The settings in a TOML text; `name` stands for it in errors."""
    try:
        return msgspec.toml.decode(text, type=Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}: {_readable(_pool_fault(text) or dotted(str(error)))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{name}: not TOML: {error}") from None


def _pool_fault(text: bytes) -> str:
    """What is wrong with a [data.NAME]: the whole's error does not tell which of them."""
    pools = msgspec.toml.decode(text).get("data", {})
    for name, table in pools.items() if isinstance(pools, dict) else ():
        try:
            msgspec.convert({name: table}, dict[Id, Any])
        except msgspec.ValidationError as error:
            return f"data.{name}: {dotted(str(error)).partition(': ')[2] or error}"
        try:
            msgspec.convert(table, Pool)
        except msgspec.ValidationError as error:
            return dotted(str(error), f"data.{name}")
    return ""


def _readable(text: str) -> str:
    """An unknown key with its whole path."""
    where, _, what = text.rpartition(": ") if text.endswith("`") else ("", "", text)
    unknown = what.removeprefix("Object contains unknown field ")
    if unknown == what:
        return text
    key = unknown.strip("`")
    return f"{where + '.' if where else ''}{key}: no such key; `edged-coordinator config` prints all"
