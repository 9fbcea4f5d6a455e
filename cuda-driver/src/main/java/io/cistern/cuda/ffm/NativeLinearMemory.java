package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.PointerAttribute;
import java.lang.foreign.MemorySegment;

/// `cuMemAlloc` and relatives, pinned host memory and pointer attributes of the real driver.
final class NativeLinearMemory implements LinearMemory {
    /// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`
    static final int ALLOC_PORTABLE_MAPPED = 1 | 2;

    /// `CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP`
    static final int REGISTER_PORTABLE_MAPPED = 1 | 2;

    private final Contexts contexts;
    private final DriverFunction alloc;
    private final DriverFunction free;
    private final DriverFunction getInfo;
    private final DriverFunction getRange;
    private final DriverFunction hostAlloc;
    private final DriverFunction hostDevicePointer;
    private final DriverFunction hostFree;
    private final DriverFunction hostRegister;
    private final DriverFunction hostUnregister;
    private final DriverFunction pointerAttribute;

    NativeLinearMemory(DriverLibrary library, Contexts contexts) {
        this.contexts = contexts;
        alloc = library.function(DriverCall.MEM_ALLOC, "LL");
        free = library.function(DriverCall.MEM_FREE, "L");
        getInfo = library.function(DriverCall.MEM_GET_INFO, "LL");
        getRange = library.function(DriverCall.MEM_GET_ADDRESS_RANGE, "LLL");
        hostAlloc = library.function(DriverCall.MEM_HOST_ALLOC, "LLI");
        hostDevicePointer = library.function(DriverCall.MEM_HOST_GET_DEVICE_POINTER, "LLI");
        hostFree = library.function(DriverCall.MEM_FREE_HOST, "L");
        hostRegister = library.function(DriverCall.MEM_HOST_REGISTER, "LLI");
        hostUnregister = library.function(DriverCall.MEM_HOST_UNREGISTER, "L");
        pointerAttribute = library.function(DriverCall.POINTER_GET_ATTRIBUTE, "LIL");
    }

    @Override
    public long allocate(int device, long byteSize) {
        try (Frame frame = contexts.enter(alloc, device)) {
            alloc.check(alloc.call(frame.out(), byteSize), "device, byteSize", device, byteSize);
            return frame.outLong();
        }
    }

    @Override
    public void free(int device, long address) {
        if (address == 0) {
            return;
        }
        try (Frame _ = contexts.enter(free, device)) {
            free.check(free.call(address), "device, address", device, address);
        }
    }

    @Override
    public MemoryInfo info(int device) {
        try (Frame frame = contexts.enter(getInfo, device)) {
            getInfo.check(getInfo.call(frame.out(), frame.secondOut()), "device", device);
            return new MemoryInfo(frame.outLong(), frame.secondOutLong());
        }
    }

    @Override
    public long freeBytes(int device) {
        try (Frame frame = contexts.enter(getInfo, device)) {
            getInfo.check(getInfo.call(frame.out(), frame.secondOut()), "device", device);
            return frame.outLong();
        }
    }

    @Override
    public AddressRange range(int device, long address) {
        try (Frame frame = contexts.enter(getRange, device)) {
            int code = getRange.call(frame.out(), frame.secondOut(), address);
            getRange.check(code, "device, address", device, address);
            return new AddressRange(frame.outLong(), frame.secondOutLong());
        }
    }

    @Override
    public MemorySegment allocateHost(int device, long byteSize) {
        try (Frame frame = contexts.enter(hostAlloc, device)) {
            int code = hostAlloc.call(frame.out(), byteSize, ALLOC_PORTABLE_MAPPED);
            hostAlloc.check(code, "device, byteSize", device, byteSize);
            long address = frame.outLong();
            requireSameOnDevice(frame, device, address);
            return segment(address, byteSize);
        }
    }

    /// Checks that pinned memory has one address on host and device. This holds if addressing is unified, as on
    /// every 64-bit system that the driver still supports.
    private void requireSameOnDevice(Frame frame, int device, long address) {
        int code = hostDevicePointer.call(frame.out(), address, 0);
        if (code == 0 && frame.outLong() == address) {
            return;
        }
        hostFree.call(address);
        hostDevicePointer.check(code, "device, address", device, address);
        throw new CudaException(
                DriverCall.MEM_HOST_GET_DEVICE_POINTER,
                CudaResult.NOT_SUPPORTED.code(),
                "device=" + device + ", pinned memory has another address on the device");
    }

    @SuppressWarnings("restricted")
    private static MemorySegment segment(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }

    @Override
    public void freeHost(int device, MemorySegment memory) {
        try (Frame _ = contexts.enter(hostFree, device)) {
            hostFree.check(hostFree.call(memory.address()), "device, address", device, memory.address());
        }
    }

    @Override
    public void registerHost(int device, MemorySegment memory) {
        long address = HostMemory.address(memory, memory.byteSize());
        try (Frame _ = contexts.enter(hostRegister, device)) {
            int code = hostRegister.call(address, memory.byteSize(), REGISTER_PORTABLE_MAPPED);
            hostRegister.check(code, "device, address, byteSize", device, address, memory.byteSize());
        }
    }

    @Override
    public void unregisterHost(int device, MemorySegment memory) {
        try (Frame _ = contexts.enter(hostUnregister, device)) {
            int code = hostUnregister.call(memory.address());
            hostUnregister.check(code, "device, address", device, memory.address());
        }
    }

    @Override
    public long attribute(int device, PointerAttribute attribute, long address) {
        try (Frame frame = contexts.enter(pointerAttribute, device)) {
            int code = pointerAttribute.call(frame.zeroedOut(), attribute.code(), address);
            pointerAttribute.check(code, "device, attribute, address", device, attribute.code(), address);
            // The only attribute that may be negative; it has 32 bits.
            return attribute == PointerAttribute.DEVICE_ORDINAL ? frame.outInt() : frame.outLong();
        }
    }
}
