"""`edged-coordinator`, and `python -m coordinator`."""

from edged import entry


def main() -> None:
    """The console script."""
    entry.guard()
    from coordinator import cli

    entry.unguard()
    cli.main()


if __name__ == "__main__":
    main()
