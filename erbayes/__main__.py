"""The commands by `python -m erbayes`, for where no script `erbayes` is on the path."""

from .cli import app

if __name__ == "__main__":
    app(prog_name="erbayes")
