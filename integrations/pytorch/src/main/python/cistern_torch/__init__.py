"""Cistern as the allocator of PyTorch.

    import cistern_torch
    cistern_torch.enable()          # before anything is on the GPU
    ...                             # the program as it was

See docs/pytorch.md of Cistern.
"""

from cistern_torch._enable import enable, is_enabled
from cistern_torch._errors import CisternError
from cistern_torch._figures import (
    empty_cache,
    memory_stats,
    memory_summary,
    record_history,
    reset_peak_memory_stats,
    snapshot,
)

__all__ = [
    "CisternError",
    "empty_cache",
    "enable",
    "is_enabled",
    "memory_stats",
    "memory_summary",
    "record_history",
    "reset_peak_memory_stats",
    "snapshot",
]
