"""The largest sizes at which boards keep their throughput, learnt downwards from what raises did. Pure.

A board that got slower after its size was raised from b0 has to be found so three times before b0 bounds it
(the largest such b0: there it was fast), and only for twenty adjustments: noise and a passing load look alike
at first (ALGORITHMS 2.1; the counts are ours).
"""

from collections.abc import Mapping, Sequence

CONFIRMATIONS = 3
LIFETIME = 20
"""Adjustments, whether they change a size or not; then a larger size is tried again."""

BEFORE, SPEED = "size before", "throughput before"
DOUBTS, FAST = "slower when raised", "largest size that was fast"
CEILING, AGE = "ceiling", "ceiling's age"

State = dict[str, dict[str, float]]
"""Name of a figure -> board -> number: plain data, to be kept between rounds."""


class Ceilings:
    """Of the boards of one pool; sizes are in any one unit (samples of a round or of a step)."""

    def __init__(self, fall: float, state: Mapping[str, Mapping[str, float]] | None = None) -> None:
        """`fall` is the loss of throughput that is no noise."""
        self._fall = fall
        self._state: State = {
            name: dict((state or {}).get(name, {})) for name in (BEFORE, SPEED, DOUBTS, FAST, CEILING, AGE)
        }

    @property
    def state(self) -> State:
        """All that is to be kept."""
        return {name: dict(found) for name, found in self._state.items()}

    def hear(self, sizes: Mapping[str, float], speeds: Mapping[str, float]) -> list[str]:
        """An adjustment: the throughput of boards at their present sizes. What was learnt, in words."""
        notes = self._grow_old()
        state = self._state
        for board, speed in speeds.items():
            size, before = sizes.get(board), state[BEFORE].get(board)
            if size is None or before is None or size <= before:
                continue  # it was not raised: whatever changed its throughput was something else
            if speed >= (1 - self._fall) * state[SPEED][board]:
                self._trust(board)
                continue
            doubts = state[DOUBTS][board] = state[DOUBTS].get(board, 0.0) + 1
            fast = state[FAST][board] = max(before, state[FAST].get(board, 0.0))
            words = f"{board} got slower with {size:.0f} samples than with {before:.0f}"
            if doubts < CONFIRMATIONS:
                notes.append(f"{words}: seen {doubts:.0f} of {CONFIRMATIONS} times")
            else:
                state[CEILING][board], state[AGE][board] = fast, 0.0
                self._trust(board)
                notes.append(f"{words}, the {CONFIRMATIONS}rd time: its ceiling is {fast:.0f}")
        return notes

    def changed(self, sizes: Mapping[str, float], speeds: Mapping[str, float]) -> None:
        """Other sizes than these hold from now on; so fast were the boards with them."""
        known = {board: size for board, size in sizes.items() if speeds.get(board)}
        self._state[BEFORE] = {board: float(size) for board, size in known.items()}
        self._state[SPEED] = {board: speeds[board] for board in known}

    def caps(
        self, boards: Sequence[str], caps: Sequence[int], floors: Sequence[int], whole: int
    ) -> list[int]:
        """The caps lowered to what was learnt, never below the floors; as they were where no room would be
        left for the whole (`ignored` tells)."""
        learnt = [
            max(floor, min(cap, int(self._state[CEILING].get(board, cap))))
            for board, cap, floor in zip(boards, caps, floors, strict=True)
        ]
        return list(caps) if sum(learnt) < whole else learnt

    def ignored(self, boards: Sequence[str], caps: Sequence[int], floors: Sequence[int], whole: int) -> bool:
        """Whether something was learnt that leaves no room."""
        bounded = any(board in self._state[CEILING] for board in boards)
        return bounded and self.caps(boards, caps, floors, whole) == list(caps)

    def _trust(self, board: str) -> None:
        self._state[DOUBTS].pop(board, None)
        self._state[FAST].pop(board, None)

    def _grow_old(self) -> list[str]:
        state, notes = self._state, []
        for board in list(state[AGE]):
            state[AGE][board] += 1
            if state[AGE][board] > LIFETIME:
                notes.append(
                    f"{board}'s ceiling of {state[CEILING][board]:.0f} has ended: larger is tried again"
                )
                del state[AGE][board], state[CEILING][board]
        return notes
