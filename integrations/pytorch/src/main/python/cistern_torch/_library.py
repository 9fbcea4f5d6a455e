"""Loads libcistern_torch.so with ctypes. Its functions: src/main/cpp/cistern_torch.h."""

import ctypes
import os
import pathlib

from cistern_torch._errors import CisternError

_CAPACITY = 1 << 20
_loaded = None


def path():
    """Returns the library's path: in the distribution that CISTERN_HOME names, else in the one with this package."""
    home = os.environ.get("CISTERN_HOME") or pathlib.Path(__file__).resolve().parents[2]
    library = pathlib.Path(home, "lib", "native", "libcistern_torch.so")
    if not library.is_file():
        raise CisternError(f"there is no {library}: set CISTERN_HOME to the folder of a distribution of Cistern")
    return library


def load():
    global _loaded
    if _loaded is None:
        try:
            library = ctypes.CDLL(str(path()))
        except OSError as failure:
            raise CisternError(str(failure)) from failure
        library.cistern_error.restype = ctypes.c_char_p
        library.cistern_start.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        library.cistern_command.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        _loaded = library
    return _loaded


def start(allocator, settings):
    lines = "\n".join(f"{key}={value}" for key, value in settings.items())
    if load().cistern_start(None if allocator is None else allocator.encode(), lines.encode()):
        raise CisternError(error())


def command(text):
    answer = ctypes.create_string_buffer(_CAPACITY)
    if load().cistern_command(text.encode(), answer, _CAPACITY):
        raise CisternError(error())
    return answer.value.decode()


def address(function):
    return ctypes.cast(getattr(load(), function), ctypes.c_void_p).value


def error():
    return load().cistern_error().decode(errors="replace")
