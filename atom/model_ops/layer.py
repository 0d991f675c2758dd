"""The base of every layer: an nn.Module whose call is its `forward`.

nn.Module's own call looks for hooks, which nothing here uses; a decode step of a small model spends a fifth of its time
in some hundred of them.
"""

from __future__ import annotations

from typing import Any

from torch import nn


class Layer(nn.Module):
    """Calling it calls `forward`, nothing else. Hooks are not run."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "forward" in cls.__dict__:
            cls.__call__ = cls.forward  # type: ignore[method-assign]  # that is the point
