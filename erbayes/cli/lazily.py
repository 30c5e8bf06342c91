"""Modules next to the public names. Each is loaded when it is first used, so that help comes at once."""

from .._internal.names import LazyModule, read_stub

globals().update({name: LazyModule(path, str(__package__)) for name, path in read_stub(__file__).items()})
