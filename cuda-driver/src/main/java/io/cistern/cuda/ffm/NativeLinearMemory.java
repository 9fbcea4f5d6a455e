package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.PointerAttribute;
import java.lang.foreign.MemorySegment;

/// `cuMemAlloc` and relatives, pinned host memory and pointer attributes of the real driver.
final class NativeLinearMemory extends NativeFacet implements LinearMemory {
    /// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`
    static final int ALLOC_PORTABLE_MAPPED = 1 | 2;

    /// `CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP`
    static final int REGISTER_PORTABLE_MAPPED = 1 | 2;

    private final DriverFunction alloc = bind(DriverCall.MEM_ALLOC, "LL");
    private final DriverFunction free = bind(DriverCall.MEM_FREE, "L");
    private final DriverFunction getInfo = bind(DriverCall.MEM_GET_INFO, "LL");
    private final DriverFunction getRange = bind(DriverCall.MEM_GET_ADDRESS_RANGE, "LLL");
    private final DriverFunction hostAlloc = bind(DriverCall.MEM_HOST_ALLOC, "LLI");
    private final DriverFunction hostDevicePointer = bind(DriverCall.MEM_HOST_GET_DEVICE_POINTER, "LLI");
    private final DriverFunction hostFree = bind(DriverCall.MEM_FREE_HOST, "L");
    private final DriverFunction hostRegister = bind(DriverCall.MEM_HOST_REGISTER, "LLI");
    private final DriverFunction hostUnregister = bind(DriverCall.MEM_HOST_UNREGISTER, "L");
    private final DriverFunction pointerAttribute = bind(DriverCall.POINTER_GET_ATTRIBUTE, "LIL");

    NativeLinearMemory(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
    }

    @Override
    public long allocate(int device, long byteSize) {
        return ask(alloc, device, "device, byteSize", byteSize);
    }

    @Override
    public void free(int device, long address) {
        if (address == 0) {
            return;
        }
        run(free, device, "device, address", address);
    }

    @Override
    public MemoryInfo info(int device) {
        try (Frame frame = contexts.enter(getInfo, device)) {
            getInfo.check(getInfo.call(frame, frame.out(), frame.secondOut()), "device", device);
            return new MemoryInfo(frame.outLong(), frame.secondOutLong());
        }
    }

    @Override
    public long freeBytes(int device) {
        try (Frame frame = contexts.enter(getInfo, device)) {
            getInfo.check(getInfo.call(frame, frame.out(), frame.secondOut()), "device", device);
            return frame.outLong();
        }
    }

    @Override
    public AddressRange range(int device, long address) {
        try (Frame frame = contexts.enter(getRange, device)) {
            int code = getRange.call(frame, frame.out(), frame.secondOut(), address);
            getRange.check(code, "device, address", device, address);
            return new AddressRange(frame.outLong(), frame.secondOutLong());
        }
    }

    @Override
    public MemorySegment allocateHost(int device, long byteSize) {
        try (Frame frame = contexts.enter(hostAlloc, device)) {
            int code = hostAlloc.call(frame, frame.out(), byteSize, ALLOC_PORTABLE_MAPPED);
            hostAlloc.check(code, "device, byteSize", device, byteSize);
            long address = frame.outLong();
            requireSameOnDevice(frame, device, address);
            return segment(address, byteSize);
        }
    }

    /// Checks that pinned memory has one address on host and device. This holds if addressing is unified, as on
    /// every 64-bit system that the driver still supports.
    private void requireSameOnDevice(Frame frame, int device, long address) {
        int code = hostDevicePointer.call(frame, frame.out(), address, 0);
        if (code == 0 && frame.outLong() == address) {
            return;
        }
        hostFree.call(frame, address);
        hostDevicePointer.check(code, "device, address", device, address);
        throw new CudaException(
                DriverCall.MEM_HOST_GET_DEVICE_POINTER,
                CudaResult.NOT_SUPPORTED.code(),
                "device=" + device + ", pinned memory has a different address on the device");
    }

    @SuppressWarnings("restricted")
    private static MemorySegment segment(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }

    @Override
    public void freeHost(int device, MemorySegment memory) {
        run(hostFree, device, "device, address", memory.address());
    }

    @Override
    public void registerHost(int device, MemorySegment memory) {
        long address = hostAddress(memory, memory.byteSize());
        run(hostRegister, device, "device, address, byteSize", address, memory.byteSize(), REGISTER_PORTABLE_MAPPED);
    }

    @Override
    public void unregisterHost(int device, MemorySegment memory) {
        run(hostUnregister, device, "device, address", memory.address());
    }

    @Override
    public long attribute(int device, PointerAttribute attribute, long address) {
        long value = ask(pointerAttribute, device, "device, attribute, address", attribute.code(), address);
        // The only attribute that may be negative; it has 32 bits.
        return attribute == PointerAttribute.DEVICE_ORDINAL ? (int) value : value;
    }
}
