package io.cistern.nccl;

import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.Setting;
import io.cistern.nccl.internal.call.NcclCall;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/// The loaded libnccl and the addresses of its functions. Once loaded, it stays loaded.
///
/// It is loaded from [Setting#NCCL_LIBRARY] if that is set, else as `libnccl.so.2` from the
/// system's library path.
final class NcclLibrary {
    static final String PROPERTY = Setting.NCCL_LIBRARY.key();
    private static final String PRODUCT = "NCCL";
    private static final String NAME = "libnccl.so.2";

    /// The first version with `ncclMemAlloc` and `ncclCommRegister`.
    private static final int MIN_VERSION = 21901;

    private final String name;
    private final int version;
    private final Map<NcclCall, MemorySegment> addresses;

    private NcclLibrary(String name, int version, Map<NcclCall, MemorySegment> addresses) {
        this.name = name;
        this.version = version;
        this.addresses = addresses;
    }

    /// A library, or the reason why none can be used.
    record LoadResult(Optional<NcclLibrary> library, String reason) {}

    /// Loads the configured library. Never throws; after a failure, the reason says what is missing and
    /// what to do about it.
    static LoadResult find() {
        return tried(() -> SharedLibrary.find(PRODUCT, Setting.NCCL_LIBRARY, NAME));
    }

    static LoadResult find(String place) {
        return tried(() -> SharedLibrary.load(PRODUCT, Setting.NCCL_LIBRARY, place, NAME));
    }

    private static LoadResult tried(Supplier<SharedLibrary> search) {
        try {
            return bind(search.get());
        } catch (UnsupportedOperationException absent) {
            return no(String.valueOf(absent.getMessage()));
        } catch (RuntimeException | LinkageError e) {
            return no("NCCL can't be called: " + e);
        }
    }

    private static LoadResult no(String reason) {
        return new LoadResult(Optional.empty(), reason);
    }

    private static LoadResult bind(SharedLibrary library) {
        Map<NcclCall, MemorySegment> addresses = new EnumMap<>(NcclCall.class);
        for (NcclCall call : NcclCall.values()) {
            MemorySegment address = library.address(call.symbol());
            if (address.address() != 0) {
                addresses.put(call, address);
            }
        }
        int version = version(library);
        return missing(library.name(), version, addresses)
                .map(NcclLibrary::no)
                .orElseGet(() -> new LoadResult(Optional.of(new NcclLibrary(library.name(), version, addresses)), ""));
    }

    private static Optional<String> missing(String name, int version, Map<NcclCall, MemorySegment> addresses) {
        if (version < MIN_VERSION) {
            return Optional.of(name + " is NCCL " + text(version) + ", older than " + text(MIN_VERSION)
                    + ", the first with ncclMemAlloc; update NCCL");
        }
        for (NcclCall call : NcclCall.values()) {
            if (!addresses.containsKey(call) && call.sinceVersion() == 0) {
                return Optional.of(name + ", NCCL " + text(version) + ", has no symbol " + call.symbol());
            }
        }
        return Optional.empty();
    }

    private static int version(SharedLibrary library) {
        MethodHandle handle = library.function(
                NcclCall.GET_VERSION.symbol(), FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            int code = (int) handle.invokeExact(out);
            return code == 0 ? out.get(ValueLayout.JAVA_INT, 0) : 0;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /// Returns a version as major.minor.patch.
    static String text(int version) {
        return version >= 10_000
                ? version / 10_000 + "." + version / 100 % 100 + "." + version % 100
                : version / 1000 + "." + version / 100 % 10 + "." + version % 100;
    }

    /// Returns the version as `ncclGetVersion` codes it: 10000 × major + 100 × minor + patch.
    int version() {
        return version;
    }

    String name() {
        return name;
    }

    /// Returns a function. If this version lacks it, its call says so.
    NcclFunction function(NcclCall call) {
        return new NcclFunction(call, addresses.getOrDefault(call, MemorySegment.NULL), this);
    }
}
