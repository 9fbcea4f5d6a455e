package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.Sharing;
import io.cistern.cuda.process.Descriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Exports and imports pools, pointers and events through the real driver.
final class NativeSharing extends NativeFacet implements Sharing {
    /// `CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS`
    static final int INTERPROCESS = NativeEvents.DISABLE_TIMING | 4;

    private static final long NO_FLAGS = 0;

    private final DriverFunction exportPool = bind(DriverCall.MEM_POOL_EXPORT, "LLIL");
    private final DriverFunction importPool = bind(DriverCall.MEM_POOL_IMPORT, "LLIL");
    private final DriverFunction exportPointer = bind(DriverCall.MEM_POOL_EXPORT_POINTER, "LL");
    private final DriverFunction importPointer = bind(DriverCall.MEM_POOL_IMPORT_POINTER, "LLL");
    private final DriverFunction createEvent = bind(DriverCall.EVENT_CREATE, "LI");
    private final DriverFunction getEventHandle = bind(DriverCall.IPC_GET_EVENT_HANDLE, "LL");
    private final DriverFunction openEventHandle = bind(DriverCall.IPC_OPEN_EVENT_HANDLE, "LH");
    private final DriverFunction getMemHandle = bind(DriverCall.IPC_GET_MEM_HANDLE, "LL");

    NativeSharing(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
    }

    @Override
    public int exportPool(int device, long pool) {
        try (Frame frame = contexts.enter(exportPool, device)) {
            export(frame, frame.zeroedOut(), HandleType.POSIX_FILE_DESCRIPTOR, device, pool);
            // The driver does not promise close-on-exec.
            return new Descriptor(frame.outInt()).closedOnExec().number();
        }
    }

    @Override
    public byte[] exportPoolToFabric(int device, long pool) {
        try (Frame frame = contexts.enter(exportPool, device)) {
            MemorySegment handle = handle(frame);
            export(frame, handle.address(), HandleType.FABRIC, device, pool);
            return handle.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    private void export(Frame frame, long out, HandleType type, int device, long pool) {
        int code = exportPool.call(frame, out, pool, type.bit(), NO_FLAGS);
        exportPool.check(code, "device, pool, handleType", device, pool, type.bit());
    }

    @Override
    public long importPool(int device, int fileDescriptor) {
        int type = HandleType.POSIX_FILE_DESCRIPTOR.bit();
        // The descriptor itself takes the place of the pointer that other types have.
        return ask(importPool, device, "device, fileDescriptor, handleType", fileDescriptor, type, NO_FLAGS);
    }

    @Override
    public long importPoolFromFabric(int device, byte[] handle) {
        checkLength(handle);
        try (Frame frame = contexts.enter(importPool, device)) {
            int type = HandleType.FABRIC.bit();
            int code =
                    importPool.call(frame, frame.out(), written(frame, handle).address(), type, NO_FLAGS);
            importPool.check(code, "device, handleType", device, type);
            return frame.outLong();
        }
    }

    @Override
    public byte[] exportPointer(int device, long address) {
        try (Frame frame = contexts.enter(exportPointer, device)) {
            MemorySegment pointer = handle(frame);
            exportPointer.check(
                    exportPointer.call(frame, pointer.address(), address), "device, address", device, address);
            return pointer.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    @Override
    public long importPointer(int device, long pool, byte[] pointer) {
        checkLength(pointer);
        try (Frame frame = contexts.enter(importPointer, device)) {
            int code = importPointer.call(
                    frame, frame.out(), pool, written(frame, pointer).address());
            importPointer.check(code, "device, pool", device, pool);
            return frame.outLong();
        }
    }

    @Override
    public long createEvent(int device) {
        return ask(createEvent, device, "device, flags", INTERPROCESS);
    }

    @Override
    public byte[] exportEvent(int device, long event) {
        try (Frame frame = contexts.enter(getEventHandle, device)) {
            MemorySegment handle = handle(frame);
            getEventHandle.check(getEventHandle.call(frame, handle.address(), event), "device, event", device, event);
            return handle.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    @Override
    public long openEvent(int device, byte[] handle) {
        checkLength(handle);
        try (Frame frame = contexts.enter(openEventHandle, device)) {
            openEventHandle.check(openEventHandle.call(frame, frame.out(), written(frame, handle)), "device", device);
            return frame.outLong();
        }
    }

    @Override
    public byte[] legacyHandle(int device, long address) {
        try (Frame frame = contexts.enter(getMemHandle, device)) {
            MemorySegment handle = handle(frame);
            int code = getMemHandle.call(frame, handle.address(), address);
            if (code == CudaResult.INVALID_VALUE.code()) {
                throw getMemHandle.failed(
                        code, Arguments.text("device, address", device, address) + ": " + ONLY_LINEAR);
            }
            getMemHandle.check(code, "device, address", device, address);
            return handle.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    private static MemorySegment handle(Frame frame) {
        return frame.struct().asSlice(0, HANDLE_BYTES);
    }

    private static MemorySegment written(Frame frame, byte[] bytes) {
        return handle(frame).copyFrom(MemorySegment.ofArray(bytes));
    }

    private static void checkLength(byte[] handle) {
        if (handle.length != HANDLE_BYTES) {
            throw new IllegalArgumentException("a handle of " + handle.length + " bytes, must have " + HANDLE_BYTES);
        }
    }
}
