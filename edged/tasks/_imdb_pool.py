"""Makes an IMDB pool of labelled texts: words of the training part alone, ids of fixed length.

For a PC; boards never import it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from edged.formats import reviews
from edged.schedule import permutation
from edged.tasks._contract import PoolError, Prepared, Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edged.formats.reviews import Review
    from edged.tasks.imdb import Prepare

PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2
OFFICIAL_ARCHIVE_MD5 = "7c2ac02c03563afcf9b574c7e56c153a"
SPLIT_SEED = 50_000
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:'\w+)?|[!?]")


def prepare(source: Path, options: Prepare, progress: Progress) -> Prepared:
    """Ids uint16 or int32 (n, length) and labels int64; the official split is kept where the set has one."""
    import numpy as np

    found, kind = reviews.read(source, options.encoding or None, lambda done: progress("reading", done, 0))
    train, test, split = _split(source, found, kind)
    for part, name in ((train, "train"), (test, "held out")):
        if {review.label for review in part} != {0, 1}:
            raise PoolError(
                f"{source}: the {name} part ({len(part)} texts) does not hold both praise and blame"
            )
    progress("counting words", 0, 0)
    vocabulary = _vocabulary((review.text for review in train), options.words - FIRST_WORD)
    ids = {word: number for number, word in enumerate(vocabulary, FIRST_WORD)}
    arrays = {}
    for prefix, part in (("", train), ("test_", test)):
        arrays[f"{prefix}inputs"] = _encode(part, ids, options, progress)
        arrays[f"{prefix}targets"] = np.array([review.label for review in part], np.int64)
    facts = {"words": options.words, "length": options.length, "vocabulary": vocabulary}
    return Prepared(arrays, kind, split, _origin(source, kind, len(train), len(test)), facts)


def words(text: str) -> list[str]:
    """Lower-case words, and the two marks that carry a mood."""
    return _WORD.findall(_BREAK.sub(" ", text).lower())


def _split(source: Path, found: list[Review], kind: str) -> tuple[list[Review], list[Review], str]:
    parts = {review.part for review in found}
    if parts == {"train", "test"}:
        train, test = ([review for review in found if review.part == part] for part in ("train", "test"))
        return train, test, f"official: {len(train)} to train, {len(test)} held out"
    if parts != {""}:
        raise PoolError(
            f"{source}: only the part {'/'.join(sorted(parts))} is there, expected train and test"
        )
    if kind == "movie_reviews tree":
        # Neighbouring numbers are not reviews of one film here; every fifth is what others hold out.
        test = [review for row, review in enumerate(found) if row % 5 == 0]
        train = [review for row, review in enumerate(found) if row % 5]
        return train, test, f"every fifth review held out: {len(train)} to train, {len(test)} held out"
    order = permutation(SPLIT_SEED, 0, len(found)).tolist()
    held_out = len(found) // 5
    test, train = [found[row] for row in order[:held_out]], [found[row] for row in order[held_out:]]
    return train, test, f"shuffled by hash: {len(train)} to train, {len(test)} held out"


def _vocabulary(texts: Iterable[str], size: int) -> list[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words(text))
    # By count, then by the word itself, so that equal texts give equal pools on every machine.
    return [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size]]


def _encode(
    part: list[Review], ids: dict[str, int], options: Prepare, progress: Progress
) -> NDArray[np.generic]:
    import numpy as np

    table = np.zeros((len(part), options.length), np.uint16 if options.words <= 1 << 16 else np.int32)
    for row, review in enumerate(part):
        numbers = [ids.get(word, UNKNOWN) for word in words(review.text)]
        if len(numbers) > options.length:
            # A long review says what it is about first and what it thinks of it last: both ends are kept.
            half = options.length // 2
            numbers = numbers[: options.length - half] + numbers[len(numbers) - half :]
        table[row, : len(numbers)] = numbers
        if row % 1000 == 0:
            progress("encoding", row, len(part))
    return table


def _origin(source: Path, kind: str, train: int, test: int) -> str:
    if source.is_file() and kind == "aclImdb tree":
        digest = hashlib.md5(usedforsecurity=False)
        with source.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        if digest.hexdigest() == OFFICIAL_ARCHIVE_MD5:
            return "the official aclImdb_v1.tar.gz"
    return f"{source.name}: {train + test} texts ({kind})"
