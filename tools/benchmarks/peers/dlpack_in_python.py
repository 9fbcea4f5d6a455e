"""Buffers of Cistern as tensors of PyTorch and CuPy, and back, in one process that starts a JVM in itself. Prints a line a check;
ends with 0 if all of them hold.

usage: dlpack_in_python.py LIBJVM.so CLASSPATH [OPTION-OF-THE-JVM…]     CLASSPATH: JARs and folders by colons; DIR/* for all JARs in it
Environment: DLPACK_CHECKS names what to check with: torch, cupy, fake (a consumer and a producer in ctypes; needs no GPU). Without it,
all that are installed.
"""
import ctypes
import gc
import glob
import importlib.util
import os
import sys
import threading

JAVA = "io/cistern/examples/TensorsInPython"
VERSIONED, BEFORE = b"dltensor_versioned", b"dltensor"
COUNT = 1 << 20


class Java:
    """The static methods of a class, which take and return long."""

    JNI_VERSION = 0x00150000
    FIND_CLASS, DESCRIBE, CLEAR, METHOD, CALL_LONG, CHECK = 6, 16, 17, 113, 134, 228
    ATTACH = 7

    def __init__(self, libjvm, classpath, options):
        class Option(ctypes.Structure):
            _fields_ = [("text", ctypes.c_char_p), ("extra", ctypes.c_void_p)]

        class Arguments(ctypes.Structure):
            _fields_ = [("version", ctypes.c_int), ("count", ctypes.c_int), ("options", ctypes.POINTER(Option)),
                        ("ignore", ctypes.c_ubyte)]

        jars = [jar for part in classpath.split(":") for jar in (glob.glob(part + ".jar") if part.endswith("*") else [part])]
        texts = ["-Djava.class.path=" + ":".join(jars), "--enable-native-access=ALL-UNNAMED", *options]
        array = (Option * len(texts))(*[Option(text.encode(), None) for text in texts])
        arguments = Arguments(self.JNI_VERSION, len(texts), array, 0)
        self.vm, environment = ctypes.c_void_p(), ctypes.c_void_p()
        library = ctypes.CDLL(libjvm, mode=ctypes.RTLD_GLOBAL)
        if library.JNI_CreateJavaVM(ctypes.byref(self.vm), ctypes.byref(environment), ctypes.byref(arguments)) != 0:
            sys.exit("the JVM can't be started")
        self.type = self._jni(self.FIND_CLASS, ctypes.c_void_p, JAVA.encode())
        if not self.type:
            self._jni(self.DESCRIBE, None)
            sys.exit(JAVA + " is not on the class path")

    @staticmethod
    def _entry(table, index, returns, *arguments):
        functions = ctypes.cast(ctypes.c_void_p.from_address(table.value).value, ctypes.POINTER(ctypes.c_void_p))
        return ctypes.CFUNCTYPE(returns, ctypes.c_void_p, *[type(a) for a in arguments])(functions[index])(table, *arguments)

    def _jni(self, index, returns, *arguments):
        environment = ctypes.c_void_p()
        self._entry(self.vm, self.ATTACH, ctypes.c_int, ctypes.c_void_p(ctypes.addressof(environment)), ctypes.c_void_p())
        typed = [ctypes.c_char_p(a) if isinstance(a, bytes) else a for a in arguments]
        return self._entry(environment, index, returns, *typed)

    def __getattr__(self, name):
        def call(*numbers):
            shape = "(" + "J" * len(numbers) + ")J"
            method = self._jni(self.METHOD, ctypes.c_void_p, ctypes.c_void_p(self.type), name.encode(), shape.encode())
            values = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
            result = self._jni(self.CALL_LONG, ctypes.c_int64, ctypes.c_void_p(self.type), ctypes.c_void_p(method),
                               ctypes.cast(values, ctypes.c_void_p))
            if self._jni(self.CHECK, ctypes.c_ubyte):
                self._jni(self.DESCRIBE, None)
                self._jni(self.CLEAR, None)
                raise RuntimeError(name + " failed")
            return result
        return call


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class Before(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
python = ctypes.PyDLL(None)
new_capsule = python.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_of = python.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
raw_pointer_of = ctypes.PyDLL(None)["PyCapsule_GetPointer"]
raw_pointer_of.restype, raw_pointer_of.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
is_valid = python.PyCapsule_IsValid
is_valid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
rename = python.PyCapsule_SetName
rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = b"used_dltensor_versioned"


def delete(address, form):
    DELETER(form.from_address(address).deleter)(address)


@DELETER
def nobody_took_it(capsule):
    """The destructor of a capsule: one that was taken has another name."""
    for name, form in ((VERSIONED, Versioned), (BEFORE, Before)):
        if is_valid(capsule, name):
            delete(raw_pointer_of(capsule, name), form)


class FromJava:
    """What from_dlpack of any library takes."""

    def __init__(self, java, value):
        self.java, self.value, self.told = java, value, None

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned = max_version is not None and max_version[0] >= 1
        self.told = 1 if stream is None else stream
        address = self.java.share(COUNT, self.value, self.told, int(versioned))
        return new_capsule(address, VERSIONED if versioned else BEFORE, ctypes.cast(nobody_took_it, ctypes.c_void_p))


def take(capsule):
    """The tensor in a capsule, which is ours from now on."""
    address = pointer_of(capsule, VERSIONED)
    rename(capsule, USED)
    return address


failures = 0


def check(what, found, expected):
    global failures
    holds = found == expected
    failures += not holds
    print(("ok    " if holds else "WRONG ") + what + ("" if holds else f": {found}, not {expected}"), flush=True)


def in_thread(action):
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def fake(java):
    """A consumer and a producer that are neither."""
    address = java.share(COUNT, 2, 1, 1)
    struct = Versioned.from_address(address)
    check("fake: version", (struct.major, struct.minor), (1, 0))
    t = struct.tensor
    check("fake: layout", (t.device_type, t.device_id, t.ndim, t.code, t.bits, t.lanes, t.shape[0], t.strides[0], t.byte_offset),
          (2, 0, 1, 2, 32, 1, COUNT, 1, 0))
    check("fake: shared bytes", java.bytes(), 4 * COUNT)
    deleted = []
    deleter = DELETER(deleted.append)
    shape = (ctypes.c_int64 * 1)(COUNT // 2)
    theirs = Versioned(1, 1, None, ctypes.cast(deleter, ctypes.c_void_p), 0,
                       Tensor(t.data, 2, 0, 1, 2, 32, 1, shape, None, 2 * COUNT))
    there = ctypes.addressof(theirs)
    check("fake: Java reads the second half", java.sum(there, 1), COUNT)
    check("fake: Java deletes it once", deleted, [there])
    java.fill(there, 3, 1)
    check("fake: Java deletes it again", deleted, [there, there])
    theirs.tensor.byte_offset, shape[0] = 0, COUNT
    check("fake: Java wrote the second half alone", java.sum(there, 1), COUNT + 3 * COUNT // 2)
    theirs.major = 2
    try:
        java.sum(there, 1)
        check("fake: another version is refused", "taken", "refused")
    except RuntimeError:
        check("fake: another version is refused", len(deleted), 3)
    in_thread(lambda: delete(address, Versioned))
    check("fake: a thread that Java does not know frees", java.bytes(), 0)
    capsule = FromJava(java, 5).__dlpack__(max_version=(1, 0))
    check("fake: a capsule holds", java.bytes(), 4 * COUNT)
    del capsule
    check("fake: a capsule that nobody takes frees", java.bytes(), 0)
    capsule = FromJava(java, 5).__dlpack__()
    check("fake: Java takes back the form before", java.sum(pointer_of(capsule, BEFORE), 0), 5 * COUNT)
    rename(capsule, b"used_dltensor")
    del capsule
    check("fake: and frees it once", java.bytes(), 0)


def library(java, name, from_dlpack, side, stream_number, total, filled, allocated):
    """Checks with a library of tensors.

    side(): a side stream as a context; stream_number(): that of the present one; filled(value): a tensor, by long work;
    allocated(): bytes of its own
    """
    with side():
        source = FromJava(java, 2)
        theirs = from_dlpack(source)
        check(f"{name}: it tells its side stream", source.told, stream_number())
        check(f"{name}: it reads what Java wrote last", total(theirs), 2.0 * COUNT)
        theirs += 1
        check(f"{name}: Java's memory is alive", java.bytes(), 4 * COUNT)
        check(f"{name}: and shared", total(theirs), 3.0 * COUNT)
        del source, theirs
        gc.collect()
    check(f"{name}: Java's memory is freed", java.bytes(), 0)
    before = allocated()
    with side():
        ours = filled(7)
        tensor = take(ours.__dlpack__(stream=java.stream(), max_version=(1, 0)))
        check(f"{name}: Java reads what it wrote last", java.sum(tensor, 1), 7 * COUNT)
        tensor = take(ours.__dlpack__(stream=java.stream(), max_version=(1, 0)))
        java.fill(tensor, 4, stream_number())
        check(f"{name}: it reads what Java wrote last, without a wait of the host", total(ours), 4.0 * COUNT)
        part = ours[1:COUNT // 2 + 1]
        tensor = take(part.__dlpack__(stream=java.stream(), max_version=(1, 0)))
        del ours, part
        gc.collect()
        check(f"{name}: its memory is alive", allocated() > before, True)
        check(f"{name}: Java reads a part that begins anywhere", java.sum(tensor, 1), 4 * (COUNT // 2))
        gc.collect()
    check(f"{name}: its memory is freed", allocated(), before)
    for _ in range(100):
        held = from_dlpack(FromJava(java, 1))
    in_thread(lambda: None)
    del held
    gc.collect()
    check(f"{name}: a hundred leave nothing", java.bytes(), 0)


def torch_checks(java):
    import torch

    def filled(value):
        t = torch.empty(COUNT, device="cuda")
        for _ in range(20):
            t.fill_(-1)
        return t.fill_(value)

    torch.zeros(1, device="cuda").add_(1)
    side = torch.cuda.Stream()
    library(java, "torch", torch.from_dlpack, lambda: torch.cuda.stream(side), lambda: torch.cuda.current_stream().cuda_stream,
            lambda t: t.double().sum().item(), filled, torch.cuda.memory_allocated)
    held = [torch.from_dlpack(FromJava(java, 1))]
    in_thread(held.clear)
    check("torch: a thread that Java does not know frees", java.bytes(), 0)


def cupy_checks(java):
    import cupy

    def filled(value):
        a = cupy.empty(COUNT, dtype=cupy.float32)
        for _ in range(20):
            a.fill(-1)
        a.fill(value)
        return a

    cupy.zeros(1).sum()
    side = cupy.cuda.Stream(non_blocking=True)
    library(java, "cupy", cupy.from_dlpack, lambda: side, lambda: cupy.cuda.get_current_stream().ptr,
            lambda a: float(a.sum(dtype=cupy.float64)), filled, cupy.get_default_memory_pool().used_bytes)


def main():
    checks = {"fake": fake, "torch": torch_checks, "cupy": cupy_checks}
    installed = [name for name in checks if name == "fake" or importlib.util.find_spec(name)]
    java = Java(sys.argv[1], sys.argv[2], sys.argv[3:])
    for name in os.environ.get("DLPACK_CHECKS", ",".join(installed)).split(","):
        checks[name](java)
    print(f"{failures} wrong", flush=True)
    os._exit(1 if failures else 0)


main()
