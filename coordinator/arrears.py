"""Measurements that were owed when a coordinator ended: of the newest run, whether it is over or goes on.

A model that is still there is measured now; of one that is gone the row says so.
"""

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from coordinator.evaluations import Source
from coordinator.store import Row
from edged.controls import RunSettings
from edged.topics import version_id

if TYPE_CHECKING:
    from coordinator.server import Server

LOG = logging.getLogger(__name__)
GONE = "the coordinator ended before it was measured, and the model is not kept any more"


def settle(server: "Server") -> None:
    """Ask for what is owed, once, at the start."""
    store = server.store
    found = store.history.runs()[:1]
    try:
        settings = msgspec.convert(found[0]["settings"], RunSettings) if found else None
    except msgspec.ValidationError as error:
        LOG.error("run %s is of another version of this program (%s)", found[0]["run"], error)
        return
    if settings is None or not settings.evaluate:
        return
    run = found[0]["run"]
    source = Source(found[0]["task_source"] or settings.task, settings.options, settings.pool)
    measured = {row["round"] for row in store.history.rows("evaluation", run)}
    models = {row["round"]: row["model"] for row in store.history.rows("round", run) if row["accepted"]}
    if models:
        models[0] = 0
    for number in sorted(models.keys() - measured):
        version = version_id(run, models[number])
        if store.checkpoints.model(version).exists():
            rows = server.evaluations.measure(source, run, number, version)
        else:
            values: dict[str, Any] = {"run": run, "round": number, "version": version, "error": GONE}
            rows = [Row(run, "evaluation", values)]
        for row in rows:
            server.execution.keep(row)
