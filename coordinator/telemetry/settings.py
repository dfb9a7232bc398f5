"""[telemetry] of coordinator.toml: which server gets the time series, and how much may wait for it. Pure."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

Api = Literal["auto", "v1", "v2", "v3"]
CREDENTIAL: Final = "telemetry-secret"
"""Name of systemd's credential that holds the token, or the password where a user is given."""
TOKEN_VARIABLE: Final = "EDGED_TELEMETRY_TOKEN"


class TelemetryError(RuntimeError):
    """It cannot be set up, checked or read; the text names the server, the cause and the way out."""


class TelemetryOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing is sent without a `url`. 1.x: database, retention policy, user; 2.x: org, token, bucket
    (`database` unless given); 3.x: database, token. `power_seconds` thins the boards' 1 Hz watts (0: all)."""

    url: str = ""
    api: Api = "auto"
    database: Annotated[str, Meta(min_length=1)] = "edged"
    retention_policy: str = ""
    retention_days: Annotated[int, Meta(ge=0)] = 90
    org: str = ""
    bucket: str = ""
    username: str = ""
    password_file: str | None = None
    token_file: str | None = None
    power_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    spool_bytes: Annotated[int, Meta(ge=1 << 20)] = 256 << 20
    close_seconds: Annotated[float, Meta(ge=0, le=60)] = 5.0

    @property
    def kept_in(self) -> str:
        """Bucket of 2.x."""
        return self.bucket or self.database
