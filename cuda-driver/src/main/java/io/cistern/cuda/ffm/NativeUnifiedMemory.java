package io.cistern.cuda.ffm;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.RangeAttributes;
import io.cistern.cuda.UnifiedMemory;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/// `cuMemAllocManaged`, prefetches, advice and discards through the real driver. A `CUmemLocation` by value is 64 bits
/// in one register: its type in the low half, its number in the high half.
final class NativeUnifiedMemory extends NativeFacet implements UnifiedMemory {
    /// `CU_MEM_ATTACH_GLOBAL`
    static final int ATTACH_GLOBAL = 1;

    /// The numbers of `CUmem_range_attribute`: a type is followed by its id.
    static final int READ_MOSTLY = 1;

    static final int ACCESSED_BY = 3;
    static final int PREFERRED_LOCATION_TYPE = 5;
    static final int LAST_PREFETCH_LOCATION_TYPE = 7;

    /// `CU_DEVICE_CPU` and `CU_DEVICE_INVALID`
    static final int HOST = -1;

    static final int NOBODY = -2;

    private final DriverFunction alloc = bind(DriverCall.MEM_ALLOC_MANAGED, "LLI");
    private final DriverFunction prefetch = bind(DriverCall.MEM_PREFETCH_ASYNC, "LLLIL");
    private final DriverFunction advise = bind(DriverCall.MEM_ADVISE, "LLIL");
    private final DriverFunction attribute = bind(DriverCall.MEM_RANGE_GET_ATTRIBUTE, "LLILL");
    private final DriverFunction discard = bind(DriverCall.MEM_DISCARD_BATCH_ASYNC, "LLLLL");

    NativeUnifiedMemory(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
    }

    @Override
    public long allocate(int device, long byteSize) {
        return ask(alloc, device, "device, byteSize", byteSize, ATTACH_GLOBAL);
    }

    @Override
    public void prefetch(int device, long address, long byteSize, MemoryLocation target, long stream) {
        try (Frame frame = contexts.enter(prefetch, device)) {
            int code = prefetch.call(frame, address, byteSize, byValue(target), 0, stream);
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
        try (Frame frame = contexts.enter(advise, device)) {
            int code = advise.call(frame, address, byteSize, advice.code(), byValue(place));
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

    @Override
    public RangeAttributes attributes(int device, long address, long byteSize) {
        try (Frame frame = contexts.enter(attribute, device)) {
            return new RangeAttributes(
                    attribute(frame, READ_MOSTLY, device, address, byteSize) != 0,
                    place(frame, PREFERRED_LOCATION_TYPE, device, address, byteSize),
                    accessedBy(frame, device, address, byteSize),
                    place(frame, LAST_PREFETCH_LOCATION_TYPE, device, address, byteSize));
        }
    }

    private int attribute(Frame frame, int which, int device, long address, long byteSize) {
        get(frame, frame.zeroedOut(), Integer.BYTES, which, device, address, byteSize);
        return frame.outInt();
    }

    private void get(Frame frame, long data, long dataBytes, int which, int device, long address, long byteSize) {
        int code = attribute.call(frame, data, dataBytes, which, address, byteSize);
        attribute.check(code, "device, address, byteSize, attribute", device, address, byteSize, which);
    }

    private Optional<MemoryLocation> place(Frame frame, int ofType, int device, long address, long byteSize) {
        int code = attribute(frame, ofType, device, address, byteSize);
        int id = attribute(frame, ofType + 1, device, address, byteSize);
        return Arrays.stream(MemoryLocation.Type.values())
                .filter(type -> type.code() == code)
                .findFirst()
                .map(type -> new MemoryLocation(type, type == MemoryLocation.Type.HOST ? 0 : id));
    }

    private List<MemoryLocation> accessedBy(Frame frame, int device, long address, long byteSize) {
        MemorySegment places = frame.struct();
        get(frame, places.address(), places.byteSize(), ACCESSED_BY, device, address, byteSize);
        return Arrays.stream(places.toArray(JAVA_INT))
                .filter(id -> id != NOBODY)
                .mapToObj(id -> id == HOST ? MemoryLocation.host() : MemoryLocation.device(id))
                .toList();
    }

    @Override
    public void discard(int device, long address, long byteSize, long stream) {
        try (Frame frame = contexts.enter(discard, device)) {
            MemorySegment range = frame.struct();
            range.set(JAVA_LONG, 0, address);
            range.set(JAVA_LONG, Long.BYTES, byteSize);
            int code = discard.call(frame, range.address(), range.address() + Long.BYTES, 1L, 0L, stream);
            discard.check(code, "device, address, byteSize, stream", device, address, byteSize, stream);
        }
    }

    private static long byValue(MemoryLocation location) {
        return location.type().code() | (long) location.id() << Integer.SIZE;
    }
}
