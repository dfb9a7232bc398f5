"""`edged-coordinator`, and `python -m coordinator`."""

from collections.abc import Callable

from edged import entry


def main() -> None:
    """The console script."""
    entry.run(_load)


def _load() -> Callable[[], None]:
    from coordinator import cli

    return cli.main


if __name__ == "__main__":
    main()
