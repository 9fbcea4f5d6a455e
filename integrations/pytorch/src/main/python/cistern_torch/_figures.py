"""Functions for which PyTorch has no hook."""

import json
import os
import sys

from cistern_torch import _enable, _library
from cistern_torch._errors import CisternError


def memory_stats(device=None):
    """Returns a device's figures, summed over allocators and graphs, as a dict with keys of torch.cuda.memory_stats."""
    return json.loads(_command(f"statistics {_ordinal(device)}"))


def memory_summary(device=None):
    """Returns a device's figures as human-readable text."""
    return _command(f"summary {_ordinal(device)}")


def reset_peak_memory_stats(device=None):
    """Resets the peaks of memory_stats to the current values."""
    _command(f"reset_peaks {_ordinal(device)}")


def empty_cache():
    """Releases all idle memory to the driver, like torch.cuda.empty_cache()."""
    _command("trim")


def record_history(enabled=True):
    """Starts recording events, which later snapshots contain; stops if enabled is False."""
    _command(f"history {str(bool(enabled)).lower()}")


def snapshot(path):
    """Writes a snapshot: a pickle for PyTorch's viewer if the path ends in .pickle, else JSON for `cistern report`."""
    file = os.path.abspath(os.fspath(path))
    if "\n" in file:
        raise CisternError(f"a path can't span several lines: {file!r}")
    _command(f"snapshot {file}")


def _command(text):
    if _enable._enabled is None:
        raise CisternError("Cistern is not enabled in this process: call cistern_torch.enable() first")
    return _library.command(text)


def _ordinal(device):
    """Returns the ordinal of a device given in any form that torch accepts: None, 1, "cuda:1" or a torch.device."""
    if isinstance(device, int):
        return device
    torch = sys.modules["torch"]
    index = None if device is None else torch.device(device).index
    return torch.cuda.current_device() if index is None else index
