"""As much of PyTorch as cistern_torch touches: it calls what was plugged in, as PyTorch would."""

import ctypes
import types

__version__ = "2.11.fake"


class _Allocator:
    """_CUDAPluggableAllocator: its setters take the addresses of C functions."""

    def __init__(self, malloc, free):
        self.malloc, self.free = malloc, free
        self.hooks = {}

    def __getattr__(self, name):
        if name.startswith("set_") and name not in without:
            return lambda address: self.hooks.__setitem__(name, address)
        raise AttributeError(name)


class CUDAPluggableAllocator:
    def __init__(self, path, malloc, free):
        library = ctypes.CDLL(path)
        take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        self._allocator = _Allocator(take((malloc, library)), give((free, library)))

    def allocator(self):
        return self._allocator


without = set()
current = None
initialized = False


def change_current_allocator(allocator):
    global current
    if initialized:
        raise RuntimeError("Can't swap an already initialized allocator")
    current = allocator.allocator()


def call(hook, types_, *arguments):
    ctypes.CFUNCTYPE(None, *types_)(current.hooks[hook])(*arguments)


_C = types.SimpleNamespace(_cuda_customAllocator=None)
cuda = types.SimpleNamespace(
    is_initialized=lambda: initialized,
    _is_in_bad_fork=lambda: False,
    current_device=lambda: 0,
    empty_cache=lambda: call("set_reset_fn", []),
    set_per_process_memory_fraction=lambda share, device: call(
        "set_memory_fraction_fn", [ctypes.c_double, ctypes.c_int], share, device
    ),
    memory=types.SimpleNamespace(
        CUDAPluggableAllocator=CUDAPluggableAllocator, change_current_allocator=change_current_allocator
    ),
)
