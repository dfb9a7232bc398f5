"""The sub-commands of `edged`: one file each, exporting `app: typer.Typer`."""
