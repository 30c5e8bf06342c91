"""A refusal in one line."""

import pytest


def raises(error, message, call, /, *args, **more):
    """Check that a call, whose arguments are sound, raises an error with a message."""
    with pytest.raises(error, match=message):
        call(*args, **more)
