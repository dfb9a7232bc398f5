"""How far from the shortest makespan the rounds are, in virtual time on noise-free boards.

Prints, for each round of the first six, the variation of compute times and makespan over N / sum(speed).
"""

from statistics import mean, pstdev

from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.world import World
from edged.controls import RunSettings

BOARDS = (
    VirtualBoard("n100", 400, 15, 6),
    VirtualBoard("pi4", 100, 6, 2),
    VirtualBoard("pi5", 250, 9, 3),
    VirtualBoard("visionfive2", 50, 5, 3),
)
BUDGET = 8000
LIMITS = {"variation": 0.02, "makespan": 1.01}


def main() -> None:
    """Print the table; the limits hold from the third round on."""
    settings = RunSettings("virtual", "virtual", BUDGET, 6, batch=32, learning_rate=0.1, evaluate=False)
    world = World(BOARDS, settings, 20000).run()
    shortest = BUDGET / sum(board.samples_per_second for board in BOARDS)
    print("round  variation of compute times  makespan / shortest")
    for number in range(1, 7):
        seconds = [row["seconds"] for row in world.rows["board_round"] if row["round"] == number]
        print(f"{number:5}  {pstdev(seconds) / mean(seconds):26.4f}  {max(seconds) / shortest:19.4f}")
    print(f"limits from round 3 on: variation {LIMITS['variation']}, makespan {LIMITS['makespan']}")


if __name__ == "__main__":
    main()
