"""What can be trained here: tasks and configured pools, as the daemon's own inventory lists them."""

from __future__ import annotations

from collections.abc import Iterator

from edged.checks import Finding
from edged.stock import Listing

SHOWN_TASKS = 12


def examine(listing: Listing) -> Iterator[Finding]:
    """Findings on an inventory (edged.stock.listing_of)."""
    for name, error in listing.task_errors.items():
        yield Finding(f"task {name}", "fail", error, "mend its file, or take it out of the tasks' folder")
    if listing.tasks:
        names = sorted(listing.tasks)
        more = f" and {len(names) - SHOWN_TASKS} more" if len(names) > SHOWN_TASKS else ""
        yield Finding("tasks", "ok", ", ".join(names[:SHOWN_TASKS]) + more)
    elif not listing.task_errors:
        yield Finding("tasks", "fail", "none was found", "install edged anew")
    if not listing.pools and not listing.task_errors.get("inventory"):
        text = "no [data.NAME] in the settings: this board can train nothing"
        yield Finding("pools", "fail", text, "edged data fetch or prepare, then [data.NAME] path = …")
    for name, pool in listing.pools.items():
        if pool.info is None:
            yield Finding(f"pool {name}", "fail", pool.error, "edged data info FOLDER tells more")
            continue
        tasks, fingerprint = ", ".join(pool.tasks), pool.info.fingerprint[:16]
        text = f"{pool.info.samples:,} samples for {tasks}; fingerprint {fingerprint}"
        if pool.error:
            yield Finding(f"pool {name}", "warn", f"{text}; {pool.error}", "edged data check FOLDER")
        else:
            yield Finding(f"pool {name}", "ok", text)
