"""`edged`, and `python -m edged`."""

from collections.abc import Callable

from edged import entry


def main() -> None:
    """The console script."""
    entry.run(_load)


def _load() -> Callable[[], None]:
    from edged import cli

    return cli.main


if __name__ == "__main__":
    main()
