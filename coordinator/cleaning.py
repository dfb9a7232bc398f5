"""Foreign text made fit for a terminal and a log: what is not printable is shown as an escape.

Whoever may publish writes names and reasons; ESC would steer the terminal, a line end forge a line.
"""

import logging
import re

_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\xa0\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)


def visible(text: str, keep: str = "") -> str:
    """The text with control, direction and surrogate characters as escapes, except those of `keep`."""
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def visible_json(document: str) -> str:
    """The same JSON: its encoding escapes ASCII's control characters, a terminal obeys others, too."""
    # A line end outside strings is layout, inside them the encoding has escaped it.
    return _UNPRINTABLE.sub(lambda at: at[0] if at[0] == "\n" else f"\\u{ord(at[0]):04x}", document)


class Lines(logging.Formatter):
    """A log line for a record, whatever the message brings along; a traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802
        return visible(super().formatException(ei), keep="\n")  # type: ignore[arg-type]


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
