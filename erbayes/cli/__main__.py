"""The commands by `python -m erbayes.cli`, for where no script `erbayes` is on the path."""

from . import app

if __name__ == "__main__":
    app(prog_name="erbayes")
