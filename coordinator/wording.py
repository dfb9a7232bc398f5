"""A checker's message with the field first, by its dotted path: `settings.budget: Expected ...`. Pure."""

MARK = " - at `"


def dotted(text: str, prefix: str = "") -> str:
    """`Expected int - at `$.a.b`` as `a.b: Expected int`; `prefix` stands before the path."""
    what, _, path = text.partition(MARK)
    # A faulty key of a table: "key` in `$.data".
    inside = path.rpartition("`$")[2] if path.startswith("key` in `$") else path.removeprefix("$")
    where = ".".join(name for name in (prefix, inside.rstrip("`").removeprefix(".")) if name)
    return f"{where}: {what}" if where else what
