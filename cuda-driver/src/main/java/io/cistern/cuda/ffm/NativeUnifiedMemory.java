package io.cistern.cuda.ffm;

import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.UnifiedMemory;

/// `cuMemAllocManaged`, prefetches and advice through the real driver. A `CUmemLocation` by value is 64 bits in
/// one register: its type in the low half, its number in the high half.
final class NativeUnifiedMemory implements UnifiedMemory {
    /// `CU_MEM_ATTACH_GLOBAL`
    static final int ATTACH_GLOBAL = 1;

    private final Contexts contexts;
    private final DriverFunction alloc;
    private final DriverFunction prefetch;
    private final DriverFunction advise;

    NativeUnifiedMemory(DriverLibrary library, Contexts contexts) {
        this.contexts = contexts;
        alloc = library.function(DriverCall.MEM_ALLOC_MANAGED, "LLI");
        prefetch = library.function(DriverCall.MEM_PREFETCH_ASYNC, "LLLIL");
        advise = library.function(DriverCall.MEM_ADVISE, "LLIL");
    }

    @Override
    public long allocate(int device, long byteSize) {
        try (Frame frame = contexts.enter(alloc, device)) {
            int code = alloc.call(frame.out(), byteSize, ATTACH_GLOBAL);
            alloc.check(code, "device, byteSize", device, byteSize);
            return frame.outLong();
        }
    }

    @Override
    public void prefetch(int device, long address, long byteSize, MemoryLocation target, long stream) {
        try (Frame _ = contexts.enter(prefetch, device)) {
            int code = prefetch.call(address, byteSize, byValue(target), 0, stream);
            prefetch.check(
                    code,
                    "device, address, byteSize, locationType, locationId, stream",
                    device,
                    address,
                    byteSize,
                    target.type().code(),
                    target.id(),
                    stream);
        }
    }

    @Override
    public void advise(int device, long address, long byteSize, MemoryAdvice advice, MemoryLocation place) {
        try (Frame _ = contexts.enter(advise, device)) {
            int code = advise.call(address, byteSize, advice.code(), byValue(place));
            advise.check(
                    code,
                    "device, address, byteSize, advice, locationType, locationId",
                    device,
                    address,
                    byteSize,
                    advice.code(),
                    place.type().code(),
                    place.id());
        }
    }

    private static long byValue(MemoryLocation location) {
        return location.type().code() | (long) location.id() << Integer.SIZE;
    }
}
