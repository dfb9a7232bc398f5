"""`edged-coordinator dashboards`: write the Grafana dashboards into a folder, or install them in Grafana."""

import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from coordinator.commands import _show, exits
from coordinator.commands._surroundings import JsonOption, told
from coordinator.commands.exits import CommandError

ACTIONS: Final = ("export", "install")
TOKEN_VARIABLE: Final = "GRAFANA_TOKEN"
FOLDER: Final = {"uid": "edged", "title": "edged"}
PROVISIONING: Final = Path("/etc/grafana/provisioning")
DATA: Final = Path("/var/lib/grafana/dashboards/edged")


@told
def dashboards(
    action: Annotated[str, typer.Argument(metavar="export|install", show_default=False)],
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", show_default=False)] = None,
    *,
    url: Annotated[
        str | None, typer.Option("--url", help="Install through this Grafana's API.", show_default=False)
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help=f"A service account's token; else ${TOKEN_VARIABLE}.", show_default=False
        ),
    ] = None,
    influx: Annotated[int, typer.Option("--influx", min=1, max=3, help="Generation of the InfluxDB.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Export the dashboards as files, or install them: into a provisioning folder, or with --url by the API.

    DIR is what to export into, or for install the root of a Grafana's files (else /). The datasource is
    provisioned with them, under the name that the dashboards ask; with --url it must be there.

    Example: edged-coordinator dashboards install --influx 2
    """
    if action not in ACTIONS or (action == "export" and (folder is None or url is not None)):
        raise CommandError("dashboards: it is export DIR, install [DIR], or install --url URL", exits.USAGE)
    source = _source()
    if action == "export":
        written = _copied(_exported(source, Path(str(folder))))
    elif url is not None:
        written = _posted(source, url.rstrip("/"), _token(token_file))
    else:
        written = _copied(_installed(source, folder or Path("/"), influx))
    if as_json:
        _show.json({"written": written})
        return
    for place in written:
        typer.echo(place)
    if action == "install" and url is None:
        typer.echo("restart Grafana, which reads datasources at its start: systemctl restart grafana-server")


def _source() -> Path:
    """Where the files lie: in a checkout, or among the data of the installed wheel."""
    beside = Path(__file__).resolve().parents[2] / "dashboards"
    for folder in (beside, Path(sysconfig.get_path("data")) / "share" / "edged" / "dashboards"):
        if (folder / "json").is_dir():
            return folder
    raise CommandError(f"the dashboards are not among the files of this installation ({sys.prefix})")


def _exported(source: Path, folder: Path) -> dict[Path, Path]:
    files = [*sorted((source / "json").glob("*.json")), *sorted((source / "provisioning").glob("*.yaml"))]
    return {file: folder / file.parent.name / file.name for file in files}


def _installed(source: Path, root: Path, influx: int) -> dict[Path, Path]:
    provisioning = root / PROVISIONING.relative_to("/")
    kept = source / "provisioning"
    files = {
        file: root / DATA.relative_to("/") / file.name for file in sorted((source / "json").glob("*.json"))
    }
    files[kept / f"datasource-influxdb{influx}.yaml"] = provisioning / "datasources" / "edged.yaml"
    files[kept / "dashboards.yaml"] = provisioning / "dashboards" / "edged.yaml"
    files[kept / "alerting.yaml"] = provisioning / "alerting" / "edged.yaml"
    return files


def _copied(files: dict[Path, Path]) -> list[str]:
    for source, target in files.items():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
        except OSError as error:
            raise CommandError(f"{target}: {error.strerror}; run it as root, or name another DIR") from None
    return [str(target) for target in files.values()]


def _token(file: Path | None) -> str:
    if file is None:
        token = os.environ.get(TOKEN_VARIABLE, "")
    else:
        try:
            token = file.read_text().strip()
        except OSError as error:
            raise CommandError(f"--token-file {file}: {error.strerror}", exits.USAGE) from None
    if not token:
        raise CommandError(
            f"a token of a Grafana service account is needed: --token-file, or {TOKEN_VARIABLE}", exits.USAGE
        )
    return token


def _posted(source: Path, url: str, token: str) -> list[str]:
    written = []
    _post(f"{url}/api/folders", token, FOLDER, there_already=(409, 412))
    for file in sorted((source / "json").glob("*.json")):
        body = {"dashboard": json.loads(file.read_text()), "folderUid": FOLDER["uid"], "overwrite": True}
        answer = _post(f"{url}/api/dashboards/db", token, body)
        written.append(f"{url}{answer.get('url', '/d/' + body['dashboard']['uid'])}")
    return written


def _post(url: str, token: str, body: Any, there_already: tuple[int, ...] = ()) -> dict[str, Any]:
    from coordinator.telemetry.server import http

    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        found = http()("POST", url, json.dumps(body).encode(), head)
    except OSError as error:
        raise CommandError(f"{url}: {error}") from None
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; pip install 'edged[coordinator]' brings it"
        ) from None
    if found.status >= 400 and found.status not in there_already:
        raise CommandError(f"{url}: HTTP {found.status}: {' '.join(found.body.split())[:300]}")
    try:
        answer = json.loads(found.body)
    except ValueError:
        raise CommandError(f"{url}: no Grafana answers there: {found.body[:100]!r}") from None
    return answer if isinstance(answer, dict) else {}
