package io.cistern.cuda.ffm;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.library.NativeCode;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// The loaded driver library and the addresses of its functions. It is never unloaded, since that is not safe.
final class DriverLibrary {
    /// The property that names another library, by its name or its path.
    static final String PROPERTY = Setting.CUDA_LIBRARY.key();

    private static final String NAME = "libcuda.so.1";

    /// Functions newer than CUDA 10.0, which has all others. A driver works without them, but offers less.
    static final Set<DriverCall> OPTIONAL = EnumSet.of(
            // 13.0; 12.8 and 12.9 have a form with one more parameter
            DriverCall.MEMCPY_BATCH_ASYNC,
            DriverCall.MEM_DISCARD_BATCH_ASYNC,
            // 12.2; earlier forms can't name a place on the host
            DriverCall.MEM_PREFETCH_ASYNC,
            DriverCall.MEM_ADVISE,
            // 11.4, 12.0, 12.4 and 12.5
            DriverCall.DEVICE_REGISTER_ASYNC_NOTIFICATION,
            DriverCall.DEVICE_UNREGISTER_ASYNC_NOTIFICATION,
            DriverCall.DEVICE_GET_UUID,
            DriverCall.STREAM_GET_ID,
            DriverCall.CONTEXT_RECORD_EVENT);

    static {
        // 10.2 and 11.0: virtual memory
        OPTIONAL.addAll(EnumSet.range(DriverCall.MEM_ADDRESS_RESERVE, DriverCall.MEM_GET_ALLOCATION_GRANULARITY));
        // 11.2: pools
        OPTIONAL.addAll(EnumSet.range(DriverCall.MEM_ALLOC_ASYNC, DriverCall.DEVICE_SET_MEM_POOL));
        OPTIONAL.addAll(EnumSet.range(DriverCall.MEM_POOL_EXPORT, DriverCall.MEM_POOL_IMPORT_POINTER));
        // 10.1 to 12.3: graphs
        OPTIONAL.addAll(EnumSet.range(DriverCall.STREAM_BEGIN_CAPTURE, DriverCall.DEVICE_GRAPH_MEM_TRIM));
    }

    private final String name;
    private final Map<DriverCall, MemorySegment> addresses = new EnumMap<>(DriverCall.class);
    private final Map<DriverCall, DriverFunction> bound = new EnumMap<>(DriverCall.class);
    private final CallCounts counts = new CallCounts();

    private DriverLibrary(String name) {
        this.name = name;
    }

    /// Loads the library that the settings name, or the system's. A named library that is not a driver is a
    /// misconfiguration; a system without a driver is not.
    static DriverLibrary load() throws UnavailableException {
        Optional<Settings.Value> named = Settings.ofProcess().get(Setting.CUDA_LIBRARY);
        if (named.isEmpty()) {
            return load(NAME);
        }
        try {
            return load(named.get().text());
        } catch (UnavailableException e) {
            throw UnavailableException.misconfigured(named.get().source() + ": " + e.reason());
        }
    }

    static DriverLibrary load(String name) throws UnavailableException {
        SymbolLookup symbols = lookup(name);
        DriverLibrary library = new DriverLibrary(name);
        for (DriverCall call : DriverCall.values()) {
            MemorySegment address = symbols.find(call.symbol()).orElse(MemorySegment.NULL);
            if (address.address() == 0 && !OPTIONAL.contains(call)) {
                throw new UnavailableException(name + " has no symbol " + call.symbol()
                        + ": it is not a CUDA driver, or is older than CUDA 10.0; update the NVIDIA driver");
            }
            library.addresses.put(call, address);
        }
        return library;
    }

    private static SymbolLookup lookup(String name) throws UnavailableException {
        try {
            return NativeCode.library(name);
        } catch (IllegalCallerException e) {
            throw UnavailableException.misconfigured(NativeCode.denied());
        } catch (IllegalArgumentException e) {
            throw new UnavailableException(
                    "the library " + name + " can't be loaded: install the NVIDIA driver, or give"
                            + " the library's path with -D" + PROPERTY + "=PATH");
        }
    }

    String name() {
        return name;
    }

    CallCounts counts() {
        return counts;
    }

    DriverFunction function(DriverCall call, String shape) {
        MemorySegment address = addresses.getOrDefault(call, MemorySegment.NULL);
        return bound.computeIfAbsent(call, c -> new DriverFunction(c, shape, address, counts));
    }

    Map<DriverCall, DriverFunction> bound() {
        return Map.copyOf(bound);
    }

    List<DriverCall> missing(DriverCall... calls) {
        return List.of(calls).stream()
                .filter(call -> addresses.getOrDefault(call, MemorySegment.NULL).address() == 0)
                .toList();
    }
}
