package io.cistern.cuda.ffm;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.VirtualMemory;
import java.util.List;

/// Address ranges, physical handles and mappings of the real driver. The flags and offsets of these functions
/// must be 0.
final class NativeVirtualMemory implements VirtualMemory {
    static final int MINIMUM = 0;
    static final int RECOMMENDED = 1;

    private final Contexts contexts;
    private final DriverFunction getGranularity;
    private final DriverFunction reserve;
    private final DriverFunction freeReservation;
    private final DriverFunction create;
    private final DriverFunction release;
    private final DriverFunction map;
    private final DriverFunction unmap;
    private final DriverFunction setAccess;
    private final DriverFunction getAccess;
    private final DriverFunction retainHandle;

    NativeVirtualMemory(DriverLibrary library, Contexts contexts) {
        this.contexts = contexts;
        getGranularity = library.function(DriverCall.MEM_GET_ALLOCATION_GRANULARITY, "LLI");
        reserve = library.function(DriverCall.MEM_ADDRESS_RESERVE, "LLLLL");
        freeReservation = library.function(DriverCall.MEM_ADDRESS_FREE, "LL");
        create = library.function(DriverCall.MEM_CREATE, "LLLL");
        release = library.function(DriverCall.MEM_RELEASE, "L");
        map = library.function(DriverCall.MEM_MAP, "LLLLL");
        unmap = library.function(DriverCall.MEM_UNMAP, "LL");
        setAccess = library.function(DriverCall.MEM_SET_ACCESS, "LLLL");
        getAccess = library.function(DriverCall.MEM_GET_ACCESS, "LLL");
        retainHandle = library.function(DriverCall.MEM_RETAIN_ALLOCATION_HANDLE, "LL");
    }

    @Override
    public long granularity(PhysicalMemory memory, boolean recommended) {
        try (Frame frame = contexts.enter(getGranularity, memory.device())) {
            return granularity(frame, memory, recommended);
        }
    }

    private long granularity(Frame frame, PhysicalMemory memory, boolean recommended) {
        int option = recommended ? RECOMMENDED : MINIMUM;
        int code = getGranularity.call(frame.out(), Structs.allocationProperties(frame, memory), option);
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

    /// Returns the smallest granularity, asked for without a context.
    long smallestGranularity(PhysicalMemory memory) {
        try (Frame frame = Frame.acquire()) {
            return granularity(frame, memory, false);
        }
    }

    @Override
    public long reserve(int device, long byteSize, long byteAlignment, long hint) {
        try (Frame frame = contexts.enter(reserve, device)) {
            int code = reserve.call(frame.out(), byteSize, byteAlignment, hint, 0L);
            reserve.check(code, "device, byteSize, byteAlignment, hint", device, byteSize, byteAlignment, hint);
            return frame.outLong();
        }
    }

    @Override
    public void freeReservation(int device, long address, long byteSize) {
        try (Frame _ = contexts.enter(freeReservation, device)) {
            int code = freeReservation.call(address, byteSize);
            freeReservation.check(code, "device, address, byteSize", device, address, byteSize);
        }
    }

    @Override
    public long create(long byteSize, PhysicalMemory memory) {
        try (Frame frame = contexts.enter(create, memory.device())) {
            return create(frame, byteSize, memory);
        }
    }

    private long create(Frame frame, long byteSize, PhysicalMemory memory) {
        int code = create.call(frame.out(), byteSize, Structs.allocationProperties(frame, memory), 0L);
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
            release.check(release.call(handle), "handle", handle);
        }
    }

    @Override
    public void release(int device, long handle) {
        try (Frame _ = contexts.enter(release, device)) {
            release.check(release.call(handle), "device, handle", device, handle);
        }
    }

    @Override
    public void map(int device, long address, long byteSize, long handle) {
        try (Frame _ = contexts.enter(map, device)) {
            int code = map.call(address, byteSize, 0L, handle, 0L);
            map.check(code, "device, address, byteSize, handle", device, address, byteSize, handle);
        }
    }

    @Override
    public void unmap(int device, long address, long byteSize) {
        try (Frame _ = contexts.enter(unmap, device)) {
            int code = unmap.call(address, byteSize);
            unmap.check(code, "device, address, byteSize", device, address, byteSize);
        }
    }

    @Override
    public void setAccess(int device, long address, long byteSize, MemoryLocation accessor, AccessRights rights) {
        try (Frame frame = contexts.enter(setAccess, device)) {
            int code = setAccess.call(address, byteSize, Structs.access(frame, accessor, rights), 1L);
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
                int code = setAccess.call(address, byteSize, descriptors, (long) to - from);
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
            int code = getAccess.call(frame.zeroedOut(), Structs.location(frame, accessor), address);
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
        try (Frame frame = contexts.enter(retainHandle, device)) {
            int code = retainHandle.call(frame.out(), address);
            retainHandle.check(code, "device, address", device, address);
            return frame.outLong();
        }
    }
}
