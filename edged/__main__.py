"""`edged`, and `python -m edged`."""

from edged import entry


def main() -> None:
    """The console script."""
    entry.guard()
    from edged import cli

    entry.unguard()
    cli.main()


if __name__ == "__main__":
    main()
