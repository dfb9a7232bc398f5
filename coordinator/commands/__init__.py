"""The commands of `edged-coordinator`, one file each; `cli` mounts them.

What they import at the top is light, so that `--help` is quick. Files that start with `_` are helpers.
"""
