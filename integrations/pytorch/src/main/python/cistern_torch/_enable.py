import os
import threading

from cistern_torch import _library
from cistern_torch._errors import CisternError

# PyTorch's hooks and the functions behind them. Statistics and snapshots have no hooks: see _figures.py.
_HOOKS = {
    "set_record_stream_fn": "cistern_record_stream",
    "set_reset_fn": "cistern_empty_cache",
    "set_memory_fraction_fn": "cistern_set_memory_fraction",
    "set_begin_allocate_to_pool": "cistern_begin_pool",
    "set_end_allocate_to_pool_fn": "cistern_end_pool",
    "set_release_pool": "cistern_release_pool",
}

_lock = threading.Lock()
_enabled = None  # once enabled: the spec, the settings and the process ID


def enable(allocator=None, settings=None, **options):
    """Makes Cistern the allocator of PyTorch in this process, until the process ends.

    Call it before PyTorch uses the GPU; the program needs no other change.

    allocator: a spec such as "caching" or "caching:fit=tight"; by default the configured one (CISTERN_ALLOCATOR),
        else "caching".
    settings: Cistern's settings by their names, such as {"limit": "8GiB", "observe": "history"}; they take precedence
        over those of the environment.
    options: options of the allocator, such as page_size="2MiB".

    Raises CisternError if PyTorch can't use Cistern: PyTorch has already used the GPU or was built without CUDA, there
    is no JVM or no driver, the allocator or a setting is invalid, or this is a forked child of a process that has
    enabled Cistern.
    """
    global _enabled
    spec, set_in_code = _spec(allocator, options), _settings(settings or {})
    with _lock:
        if _enabled is not None:
            _require_the_same((spec, set_in_code))
            return
        torch = _torch()
        _library.start(spec, set_in_code)
        _plug(torch)
        _enabled = (spec, set_in_code, os.getpid())


def is_enabled():
    """Returns whether Cistern serves PyTorch in this process."""
    return _enabled is not None and _enabled[2] == os.getpid()


def _spec(allocator, options):
    if not options:
        return allocator
    given = ",".join(f"{key}={_text(value)}" for key, value in options.items())
    name = allocator or "caching"
    return name + ("," if ":" in name else ":") + given


def _settings(settings):
    return {key if key.startswith("cistern.") else "cistern." + key: _text(value) for key, value in settings.items()}


def _text(value):
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if "\n" in text:
        raise CisternError(f"a value can't span several lines: {text!r}")
    return text


def _require_the_same(asked):
    if _enabled[2] != os.getpid():
        _library.start(None, {})  # raises the reason
    if asked != _enabled[:2]:
        raise CisternError(
            f"Cistern is enabled in this process with {_enabled[0] or 'the configured allocator'} and {_enabled[1]}, and"
            f" PyTorch can't change its allocator: {asked[0] or 'the configured allocator'} and {asked[1]} need a process"
            " of their own"
        )


def _torch():
    import torch

    if not hasattr(torch._C, "_cuda_customAllocator"):
        raise CisternError(f"PyTorch {torch.__version__} was built without CUDA")
    if torch.cuda.is_initialized():
        raise CisternError(
            "PyTorch has already used the GPU and can no longer change its allocator: call cistern_torch.enable() before"
            " the first tensor on the GPU, ideally right after the imports"
        )
    return torch


def _plug(torch):
    plugged = torch.cuda.memory.CUDAPluggableAllocator(str(_library.path()), "cistern_malloc", "cistern_free")
    inner = plugged.allocator()
    for hook, function in _HOOKS.items():
        if not hasattr(inner, hook):
            raise CisternError(f"PyTorch {torch.__version__} has no {hook}: version 2.3 or newer is needed")
        getattr(inner, hook)(_library.address(function))
    try:
        torch.cuda.memory.change_current_allocator(plugged)
    except RuntimeError as refused:
        raise CisternError(f"PyTorch refuses another allocator: {refused}") from refused
    os.register_at_fork(after_in_child=lambda: _in_child(torch))


def _in_child(torch):
    """Makes PyTorch refuse the GPU in a forked child: the parent has used the driver, even if not through PyTorch."""
    torch.cuda._is_in_bad_fork = lambda: True
