"""IMDB: whether a film review praises or blames, from its words, on a prepared pool.

Made by `edged data prepare imdb SOURCE -o DIR` of aclImdb or the older sets of reviews and sentences.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from edged.formats import prepared
from edged.tasks import _classification
from edged.tasks._contract import (
    BUILTIN,
    Data,
    Defaults,
    OtherPoolError,
    PoolError,
    PoolInfo,
    Prepared,
    Progress,
)

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from edged.tasks._contract import Batch

NAME = "imdb"
SUMMARY = "praise or blame in film reviews (IMDB and kin), by words; GRU or small attention"
DEFAULTS = Defaults(batch=32, learning_rate=0.003, optimizer="adam")
HELPERS = ("_classification.py", "_contract.py", "../formats/prepared.py")

loss_sum = _classification.loss_sum


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`words` is the size of the pool's vocabulary."""

    model: Literal["gru", "attention"] = "gru"
    width: int = 32
    words: int = 10_000
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if not 8 <= self.width <= 1024 or self.width % 4:
            raise ValueError(f"width is {self.width}, expected a multiple of 4 from 8 to 1024")
        if not 100 <= self.words <= 1_000_000:
            raise ValueError(f"words is {self.words}, expected 100 to 1000000")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}, expected 0 to below 1")


class Prepare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Vocabulary and length of the texts; encoding "" means what the set was published in."""

    words: int = 10_000
    length: int = 256
    encoding: str = ""

    def __post_init__(self) -> None:
        if not 100 <= self.words <= 1_000_000:
            raise ValueError(f"words is {self.words}, expected 100 to 1000000")
        if not 4 <= self.length <= 10_000:
            raise ValueError(f"length is {self.length}, expected 4 to 10000")


def model(options: Options, seed: int) -> torch.nn.Module:
    """Ids int64 (n, length), 0 for padding, to two logits."""
    import torch
    from torch import nn

    class Reader(nn.Module):
        """Embedding, a body over the words, then the mean and the maximum over those that are there."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(options.words, options.width, padding_idx=0)
            nn.init.normal_(self.embedding.weight, std=0.1)
            self.dropout = nn.Dropout(options.dropout)
            self.body = _gru(options.width) if options.model == "gru" else _attention(options.width)
            self.head = nn.Linear(2 * options.width, 2)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            there = (ids != 0).unsqueeze(2)
            states = self.body(self.dropout(self.embedding(ids)), there)
            mean = (states * there).sum(dim=1) / there.sum(dim=1).clamp(min=1)
            # A review without a single word has no maximum; it gets zeros, not minus infinity.
            most = states.masked_fill(~there, -1e4).amax(dim=1).masked_fill(~there.any(dim=1), 0.0)
            logits: torch.Tensor = self.head(self.dropout(torch.cat([mean, most], dim=1)))
            return logits

    with _classification.seeded(seed):
        return Reader()


def inspect(folder: Path | None) -> PoolInfo:
    """A prepared pool of this task."""
    return prepared.inspect(_folder(folder), NAME)


def load(folder: Path | None, options: Options) -> Data:
    """Ids uint16 or int32 (n, length), labels int64 (1 is praise), and the vocabulary in `facts`."""
    data = prepared.load(_folder(folder), NAME)
    if data.facts["words"] != options.words:
        raise PoolError(f"{folder}: has {data.facts['words']} words; the task's option says {options.words}")
    return data


def batch(data: Data, indices: NDArray[np.int64]) -> Batch:
    """Ids int64 (n, length), and labels."""
    return _tensors(data.inputs[indices], data.targets[indices])


def evaluate(model: torch.nn.Module, data: Data, max_samples: int | None = None) -> dict[str, float]:
    """Held-out loss (nats) and accuracy."""
    return _classification.held_out_means(model, data, _tensors, max_samples)


def prepare(source: Path, options: Prepare, progress: Progress) -> Prepared:
    """A pool from the sets of reviews that `edged.formats.reviews` knows."""
    from edged.tasks import _imdb_pool

    return _imdb_pool.prepare(source, options, progress)


def _tensors(ids: NDArray[np.generic], labels: NDArray[np.generic]) -> Batch:
    import numpy as np
    import torch

    # Columns that are padding in the whole batch cost time and change nothing.
    used = int((ids != 0).any(axis=0).sum()) if len(ids) else 1
    return torch.from_numpy(ids[:, : max(1, used)].astype(np.int64)), torch.from_numpy(labels)


def _folder(folder: Path | None) -> Path:
    if folder is None or folder.parts[:1] == BUILTIN.parts:
        raise OtherPoolError(f"{NAME} needs a prepared pool; nothing of it ships with edged")
    return folder


def _gru(width: int) -> torch.nn.Module:
    from torch import nn

    class Gru(nn.Module):
        """A GRU's state after each word."""

        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(width, width, batch_first=True)

        def forward(self, words: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.gru(words)[0]
            return states

    return Gru()


def _attention(width: int) -> torch.nn.Module:
    import torch
    from torch import nn

    class Attention(nn.Module):
        """One pre-norm layer of four heads; each word sees all words that are there."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(
                width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=True
            )

        def forward(self, words: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
            hidden = ~there.squeeze(2)
            # The first place stays open: attention over nothing is NaN.
            hidden = hidden & (torch.arange(hidden.shape[1]) > 0)
            states: torch.Tensor = self.layer(words, src_key_padding_mask=hidden)
            return states

    return Attention()
