package io.cistern.cuda.ffm;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;

/// `cuMemAllocAsync` and pools of the real driver.
final class NativeMemoryPools extends NativeFacet implements MemoryPools {
    private final DriverFunction create = bind(DriverCall.MEM_POOL_CREATE, "LL");
    private final DriverFunction destroy = bind(DriverCall.MEM_POOL_DESTROY, "L");
    private final DriverFunction getDefault = bind(DriverCall.DEVICE_GET_DEFAULT_MEM_POOL, "LI");
    private final DriverFunction getCurrent = bind(DriverCall.DEVICE_GET_MEM_POOL, "LI");
    private final DriverFunction setCurrent = bind(DriverCall.DEVICE_SET_MEM_POOL, "IL");
    private final DriverFunction alloc = bind(DriverCall.MEM_ALLOC_ASYNC, "LLL");
    private final DriverFunction allocFrom = bind(DriverCall.MEM_ALLOC_FROM_POOL_ASYNC, "LLLL");
    private final DriverFunction free = bind(DriverCall.MEM_FREE_ASYNC, "LL");
    private final DriverFunction getAttribute = bind(DriverCall.MEM_POOL_GET_ATTRIBUTE, "LIL");
    private final DriverFunction setAttribute = bind(DriverCall.MEM_POOL_SET_ATTRIBUTE, "LIL");
    private final DriverFunction trimTo = bind(DriverCall.MEM_POOL_TRIM_TO, "LL");
    private final DriverFunction setAccess = bind(DriverCall.MEM_POOL_SET_ACCESS, "LLL");
    private final DriverFunction getAccess = bind(DriverCall.MEM_POOL_GET_ACCESS, "LLL");

    NativeMemoryPools(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
    }

    @Override
    public long create(MemoryPoolProperties properties) {
        MemoryLocation location = properties.location();
        // A pool of host memory names no device, so any context will do.
        int device = location.type() == MemoryLocation.Type.DEVICE ? location.id() : 0;
        try (Frame frame = contexts.enter(create, device)) {
            create(frame, properties);
            return frame.outLong();
        }
    }

    private void create(Frame frame, MemoryPoolProperties properties) {
        create.check(
                create.call(frame, frame.out(), Structs.poolProperties(frame, properties)),
                "locationType, locationId, handleTypes, byteSize",
                properties.location().type().code(),
                properties.location().id(),
                properties.handleTypes(),
                properties.maxByteSize());
    }

    /// Creates a pool and destroys it, without a context.
    void tryCreate(MemoryPoolProperties properties) {
        try (Frame frame = Frame.acquire()) {
            create(frame, properties);
            destroy.check(destroy.call(frame, frame.outLong()), "pool", frame.outLong());
        }
    }

    @Override
    public void destroy(int device, long pool) {
        run(destroy, device, "device, pool", pool);
    }

    @Override
    public long defaultPool(int device) {
        int handle = contexts.handle(getDefault, device);
        return ask(getDefault, device, "device", handle);
    }

    @Override
    public long currentPool(int device) {
        int handle = contexts.handle(getCurrent, device);
        return ask(getCurrent, device, "device", handle);
    }

    @Override
    public void setCurrentPool(int device, long pool) {
        int handle = contexts.handle(setCurrent, device);
        try (Frame frame = contexts.enter(setCurrent, device)) {
            setCurrent.check(setCurrent.call(frame, handle, pool), "device, pool", device, pool);
        }
    }

    @Override
    public long allocate(int device, long byteSize, long stream) {
        try (Frame frame = contexts.enter(alloc, device)) {
            int code = alloc.call(frame, frame.out(), byteSize, stream);
            alloc.check(code, "device, byteSize, stream", device, byteSize, stream);
            return frame.outLong();
        }
    }

    /// The fast path queries no context. It releases the frame instead of closing it, since it changes
    /// neither context nor mode.
    @Override
    public long allocateFrom(int device, long pool, long byteSize, long stream) {
        if (contexts.isNamedBy(stream, device)) {
            Frame frame = Frame.acquire();
            try {
                int code = allocFrom.call(frame, frame.out(), byteSize, pool, stream);
                if (code == 0 || contexts.isCurrent(frame, device)) {
                    return allocated(code, frame, device, pool, byteSize, stream);
                }
            } finally {
                frame.release();
            }
        }
        return allocateInContext(device, pool, byteSize, stream);
    }

    private long allocateInContext(int device, long pool, long byteSize, long stream) {
        try (Frame frame = contexts.enter(allocFrom, device)) {
            int code = allocFrom.call(frame, frame.out(), byteSize, pool, stream);
            return allocated(code, frame, device, pool, byteSize, stream);
        }
    }

    private long allocated(int code, Frame frame, int device, long pool, long byteSize, long stream) {
        allocFrom.check(code, "device, pool, byteSize, stream", device, pool, byteSize, stream);
        return frame.outLong();
    }

    @Override
    public void free(int device, long address, long stream) {
        if (contexts.isNamedBy(stream, device)) {
            Frame frame = Frame.acquire();
            try {
                int code = free.call(frame, address, stream);
                if (code == 0 || contexts.isCurrent(frame, device)) {
                    freed(code, device, address, stream);
                    return;
                }
            } finally {
                frame.release();
            }
        }
        freeInContext(device, address, stream);
    }

    private void freeInContext(int device, long address, long stream) {
        try (Frame frame = contexts.enter(free, device)) {
            freed(free.call(frame, address, stream), device, address, stream);
        }
    }

    private void freed(int code, int device, long address, long stream) {
        free.check(code, "device, address, stream", device, address, stream);
    }

    @Override
    public long attribute(int device, long pool, PoolAttribute attribute) {
        try (Frame frame = contexts.enter(getAttribute, device)) {
            int code = getAttribute.call(frame, pool, attribute.code(), frame.zeroedOut());
            getAttribute.check(code, "device, pool, attribute", device, pool, attribute.code());
            return attribute.isInt() ? frame.outInt() : frame.outLong();
        }
    }

    @Override
    public void setAttribute(int device, long pool, PoolAttribute attribute, long value) {
        try (Frame frame = contexts.enter(setAttribute, device)) {
            // Little-endian: the driver reads an int from the low half.
            frame.setOut(value);
            int code = setAttribute.call(frame, pool, attribute.code(), frame.out());
            setAttribute.check(code, "device, pool, attribute, value", device, pool, attribute.code(), value);
        }
    }

    @Override
    public void trimTo(int device, long pool, long keepBytes) {
        run(trimTo, device, "device, pool, keepBytes", pool, keepBytes);
    }

    @Override
    public void setAccess(int device, long pool, int peer, AccessRights rights) {
        try (Frame frame = contexts.enter(setAccess, device)) {
            int code = setAccess.call(frame, pool, Structs.access(frame, MemoryLocation.device(peer), rights), 1L);
            setAccess.check(code, "device, pool, peer, rights", device, pool, peer, rights.code());
        }
    }

    @Override
    public AccessRights access(int device, long pool, int peer) {
        try (Frame frame = contexts.enter(getAccess, device)) {
            int code = getAccess.call(
                    frame, frame.zeroedOut(), pool, Structs.location(frame, MemoryLocation.device(peer)));
            getAccess.check(code, "device, pool, peer", device, pool, peer);
            return AccessRights.of(frame.outInt());
        }
    }
}
