"""What PyTorch has no hook for."""

import json
import os
import sys

from cistern_torch import _enable, _library
from cistern_torch._errors import CisternError


def memory_stats(device=None):
    """The figures of a device by the names of torch.cuda.memory_stats, as a dict, over all allocators and graphs."""
    return json.loads(_command(f"statistics {_ordinal(device)}"))


def memory_summary(device=None):
    """The figures of a device as a text for people."""
    return _command(f"summary {_ordinal(device)}")


def reset_peak_memory_stats(device=None):
    """Lets the peaks of memory_stats begin at what is in use."""
    _command(f"reset_peaks {_ordinal(device)}")


def empty_cache():
    """Gives all idle memory back to the driver, as torch.cuda.empty_cache() does."""
    _command("trim")


def record_history(enabled=True):
    """Records what happens from now on; a snapshot has it then."""
    _command(f"history {str(bool(enabled)).lower()}")


def snapshot(path):
    """Writes what the memory looks like: a .pickle for PyTorch's viewer, else JSON for `cistern report`."""
    file = os.path.abspath(os.fspath(path))
    if "\n" in file:
        raise CisternError(f"a path can't have several lines: {file!r}")
    _command(f"snapshot {file}")


def _command(text):
    if _enable._enabled is None:
        raise CisternError("Cistern is not enabled in this process: call cistern_torch.enable() first")
    return _library.command(text)


def _ordinal(device):
    """The number of a device given as torch takes it: None, 1, "cuda:1" or a torch.device."""
    if isinstance(device, int):
        return device
    torch = sys.modules["torch"]
    index = None if device is None else torch.device(device).index
    return torch.cuda.current_device() if index is None else index
