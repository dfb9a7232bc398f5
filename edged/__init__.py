"""edged: the daemon on a board and the words it speaks. Holds the version only, so that it stays light."""

__version__ = "0.1.0"
