"""python -m edged"""

from edged.cli import main

if __name__ == "__main__":
    main()
