"""Labelled texts as film-review sets come: aclImdb and movie_reviews trees, two files of sentences, lines
ending in 0/1, CSV and parquet; in a folder, an archive or a file, told apart by what is in it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from edged.formats import archives, parquet
from edged.formats.archives import Member
from edged.tasks._contract import PoolError

MAX_TEXT_BYTES = 1 << 20
MAX_FILE_BYTES = 1 << 30
CLASSES = {"neg": 0, "negative": 0, "0": 0, "pos": 1, "positive": 1, "1": 1}

_TREE = re.compile(r"(?:^|/)(train|test)/(pos|neg)/[^/]+\.txt$")
_FLAT = re.compile(r"(?:^|/)(pos|neg)/[^/]+\.txt$")
_LINES = re.compile(r"(?:^|/)rt-polarity\.(pos|neg)$")


class Review(NamedTuple):
    """A text, 1 for praise and 0 for blame, and `train`, `test` or `` where the set has no split."""

    text: str
    label: int
    part: str


def read(source: Path, encoding: str | None, progress: Callable[[int], None]) -> tuple[list[Review], str]:
    """All reviews in a fixed order, and the name of the format. Raises PoolError naming file and fault."""
    if parquet.is_parquet(source):
        return list(_parquet(source)), "parquet"
    reviews: list[tuple[str, Review]] = []
    formats: set[str] = set()
    for member in archives.members(source, _known):
        kind, reader = _kind(member.name)
        formats.add(kind)
        if len(formats) > 1:
            raise PoolError(f"{source}: holds several sets ({', '.join(sorted(formats))}); name one of them")
        # A tar keeps the order of whoever packed it: sorted, equal texts are equal pools.
        key = "/".join(member.name.split("/")[-3:])
        reviews += [(key, review) for review in reader(member, encoding)]
        progress(len(reviews))
    if not reviews:
        raise PoolError(
            f"{source}: no reviews in it; expected train/pos/*.txt (aclImdb), pos/*.txt (movie_reviews),"
            " rt-polarity.pos, a .csv with review,sentiment, a .txt of lines ending in 0 or 1, or .parquet"
        )
    return [review for _, review in sorted(reviews, key=lambda pair: pair[0])], formats.pop()


def _known(name: str) -> bool:
    return _kind(name)[0] != ""


def _kind(name: str) -> tuple[str, Callable[[Member, str | None], list[Review]]]:
    if _TREE.search(name):
        return "aclImdb tree", _tree
    if _FLAT.search(name):
        return "movie_reviews tree", _flat
    if _LINES.search(name):
        return "sentence polarity", _sentences
    if name.endswith(".csv"):
        return "CSV", _csv
    # README.txt and urls_pos.txt of the archives are no reviews.
    if name.endswith(("_labelled.txt", ".tsv")):
        return "labelled lines", _labelled
    return "", _flat


def _tree(member: Member, encoding: str | None) -> list[Review]:
    found = _TREE.search(member.name)
    part, label = found.groups() if found else ("", "")
    return [Review(_text(member, encoding or "utf-8", MAX_TEXT_BYTES), CLASSES[label], part)]


def _flat(member: Member, encoding: str | None) -> list[Review]:
    found = _FLAT.search(member.name)
    # The Pang and Lee set was published in latin-1, and has no test part of its own.
    text = _text(member, encoding or "latin-1", MAX_TEXT_BYTES)
    return [Review(text, CLASSES[found.group(1) if found else ""], "")]


def _sentences(member: Member, encoding: str | None) -> list[Review]:
    found = _LINES.search(member.name)
    label = CLASSES[found.group(1) if found else ""]
    lines = _text(member, encoding or "utf-8", MAX_FILE_BYTES).split("\n")
    return [_expect_text(member, row, line, label) for row, line in enumerate(_without_end(lines), 1)]


def _labelled(member: Member, encoding: str | None) -> list[Review]:
    reviews = []
    for row, line in enumerate(
        _without_end(_text(member, encoding or "utf-8", MAX_FILE_BYTES).split("\n")), 1
    ):
        text, tab, label = line.rstrip("\r").rpartition("\t")
        if not tab or label not in ("0", "1"):
            raise PoolError(f"{member.shown}: line {row} does not end in a tab and 0 or 1")
        reviews.append(_expect_text(member, row, text, int(label)))
    return reviews


def _csv(member: Member, encoding: str | None) -> list[Review]:
    text = _text(member, encoding or "utf-8-sig", MAX_FILE_BYTES)
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        pairs = [pair for pair in (("review", "sentiment"), ("text", "label")) if set(pair) <= set(header)]
        if not pairs:
            shown = ", ".join(name[:20] for name in header[:4])
            raise PoolError(
                f"{member.shown}: no header with review,sentiment or text,label; it begins {shown}"
            )
        at, to = (header.index(name) for name in pairs[0])
        reviews = []
        for row, values in enumerate(rows, 2):
            label = values[to].strip().lower() if len(values) == len(header) else ""
            if label not in CLASSES:
                raise PoolError(f"{member.shown}: row {row} has no label positive, negative, 0 or 1")
            reviews.append(_expect_text(member, row, values[at], CLASSES[label]))
    except csv.Error as error:
        raise PoolError(f"{member.shown}: not a CSV file: {error}") from None
    return reviews


def _parquet(source: Path) -> Iterator[Review]:
    for part, paths in sorted(parquet.parts(source).items()):
        for path in paths:
            texts, labels = parquet.columns([path], ("text", "label"))
            classes = parquet.labels(labels, 2, path)
            for row, (text, label) in enumerate(zip(texts, classes.tolist(), strict=True), 1):
                if not isinstance(text, str) or not text.strip():
                    raise PoolError(f"{path}: row {row} has no text")
                yield Review(text, label, part)


def _text(member: Member, encoding: str, limit: int) -> str:
    if member.size > limit:
        raise PoolError(f"{member.shown}: {member.size} bytes, more than the {limit} expected at most")
    try:
        text = member.read().decode(encoding)
    except UnicodeDecodeError as error:
        raise PoolError(
            f"{member.shown}: not {encoding} at byte {error.start}; if it is latin-1, --set encoding=latin-1"
        ) from None
    except LookupError:
        raise PoolError(f"{encoding!r} is no text encoding that Python knows") from None
    if not text.strip():
        raise PoolError(f"{member.shown}: empty, expected a text")
    return text


def _expect_text(member: Member, row: int, text: str, label: int) -> Review:
    if not text.strip():
        raise PoolError(f"{member.shown}: line {row} is empty, expected a text")
    return Review(text, label, "")


def _without_end(lines: list[str]) -> list[str]:
    return lines[:-1] if lines and not lines[-1] else lines
