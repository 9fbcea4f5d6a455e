package io.cistern.cuda.ffm;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.VirtualMemory;
import java.util.List;

/// Address ranges, physical handles and mappings of the real driver. The flags and offsets of these functions
/// must be 0.
final class NativeVirtualMemory extends NativeFacet implements VirtualMemory {
    static final int MINIMUM = 0;
    static final int RECOMMENDED = 1;

    private final DriverFunction getGranularity = bind(DriverCall.MEM_GET_ALLOCATION_GRANULARITY, "LLI");
    private final DriverFunction reserve = bind(DriverCall.MEM_ADDRESS_RESERVE, "LLLLL");
    private final DriverFunction freeReservation = bind(DriverCall.MEM_ADDRESS_FREE, "LL");
    private final DriverFunction create = bind(DriverCall.MEM_CREATE, "LLLL");
    private final DriverFunction release = bind(DriverCall.MEM_RELEASE, "L");
    private final DriverFunction map = bind(DriverCall.MEM_MAP, "LLLLL");
    private final DriverFunction unmap = bind(DriverCall.MEM_UNMAP, "LL");
    private final DriverFunction setAccess = bind(DriverCall.MEM_SET_ACCESS, "LLLL");
    private final DriverFunction getAccess = bind(DriverCall.MEM_GET_ACCESS, "LLL");
    private final DriverFunction retainHandle = bind(DriverCall.MEM_RETAIN_ALLOCATION_HANDLE, "LL");

    NativeVirtualMemory(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
    }

    @Override
    public long granularity(PhysicalMemory memory, boolean recommended) {
        try (Frame frame = contexts.enter(getGranularity, memory.device())) {
            return granularity(frame, memory, recommended);
        }
    }

    private long granularity(Frame frame, PhysicalMemory memory, boolean recommended) {
        int option = recommended ? RECOMMENDED : MINIMUM;
        int code = getGranularity.call(frame, frame.out(), Structs.allocationProperties(frame, memory), option);
        getGranularity.check(
                code,
                "device, locationType, locationId, handleTypes, recommended",
                memory.device(),
                memory.location().type().code(),
                memory.location().id(),
                memory.handleTypes(),
                option);
        return frame.outLong();
    }

    /// Returns the smallest granularity, without a context.
    long smallestGranularity(PhysicalMemory memory) {
        try (Frame frame = Frame.acquire()) {
            return granularity(frame, memory, false);
        }
    }

    @Override
    public long reserve(int device, long byteSize, long byteAlignment, long hint) {
        return ask(reserve, device, "device, byteSize, byteAlignment, hint", byteSize, byteAlignment, hint, 0);
    }

    @Override
    public void freeReservation(int device, long address, long byteSize) {
        run(freeReservation, device, "device, address, byteSize", address, byteSize);
    }

    @Override
    public long create(long byteSize, PhysicalMemory memory) {
        try (Frame frame = contexts.enter(create, memory.device())) {
            return create(frame, byteSize, memory);
        }
    }

    private long create(Frame frame, long byteSize, PhysicalMemory memory) {
        int code = create.call(frame, frame.out(), byteSize, Structs.allocationProperties(frame, memory), 0L);
        create.check(
                code,
                "device, byteSize, locationType, locationId, handleTypes",
                memory.device(),
                byteSize,
                memory.location().type().code(),
                memory.location().id(),
                memory.handleTypes());
        return frame.outLong();
    }

    /// Creates the smallest piece of memory and releases it, without a context.
    void tryCreate(PhysicalMemory memory) {
        try (Frame frame = Frame.acquire()) {
            long handle = create(frame, granularity(frame, memory, false), memory);
            release.check(release.call(frame, handle), "handle", handle);
        }
    }

    @Override
    public void release(int device, long handle) {
        run(release, device, "device, handle", handle);
    }

    @Override
    public void map(int device, long address, long byteSize, long handle) {
        try (Frame frame = contexts.enter(map, device)) {
            int code = map.call(frame, address, byteSize, 0L, handle, 0L);
            map.check(code, "device, address, byteSize, handle", device, address, byteSize, handle);
        }
    }

    @Override
    public void unmap(int device, long address, long byteSize) {
        run(unmap, device, "device, address, byteSize", address, byteSize);
    }

    @Override
    public void setAccess(int device, long address, long byteSize, MemoryLocation accessor, AccessRights rights) {
        try (Frame frame = contexts.enter(setAccess, device)) {
            int code = setAccess.call(frame, address, byteSize, Structs.access(frame, accessor, rights), 1L);
            setAccess.check(
                    code,
                    "device, address, byteSize, locationType, locationId, rights",
                    device,
                    address,
                    byteSize,
                    accessor.type().code(),
                    accessor.id(),
                    rights.code());
        }
    }

    @Override
    public void setAccess(
            int device, long address, long byteSize, List<MemoryLocation> accessors, AccessRights rights) {
        for (int from = 0; from < accessors.size(); from += Structs.MAX_ACCESSORS) {
            int to = Math.min(accessors.size(), from + Structs.MAX_ACCESSORS);
            try (Frame frame = contexts.enter(setAccess, device)) {
                long descriptors = Structs.access(frame, accessors.subList(from, to), rights);
                int code = setAccess.call(frame, address, byteSize, descriptors, (long) to - from);
                setAccess.check(
                        code,
                        "device, address, byteSize, count, rights",
                        device,
                        address,
                        byteSize,
                        to - from,
                        rights.code());
            }
        }
    }

    @Override
    public AccessRights access(int device, long address, MemoryLocation accessor) {
        try (Frame frame = contexts.enter(getAccess, device)) {
            int code = getAccess.call(frame, frame.zeroedOut(), Structs.location(frame, accessor), address);
            getAccess.check(
                    code,
                    "device, address, locationType, locationId",
                    device,
                    address,
                    accessor.type().code(),
                    accessor.id());
            return AccessRights.of(frame.outInt());
        }
    }

    @Override
    public long retainHandle(int device, long address) {
        return ask(retainHandle, device, "device, address", address);
    }
}
