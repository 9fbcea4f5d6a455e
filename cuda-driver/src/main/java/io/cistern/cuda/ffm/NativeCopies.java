package io.cistern.cuda.ffm;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PointerAttribute;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Copies and fills through the real driver. Operations of zero bytes are not passed on, since drivers
/// differ in how they treat their addresses.
///
/// **Pools on the host.** The driver's copies to, from and within devices refuse memory of a pool on the
/// host; its general copy accepts it. The general copy treats an address unknown to the driver as pageable
/// memory and can crash the process, so it is called only for known addresses.
final class NativeCopies extends NativeFacet implements Copies {
    /// `CU_MEMCPY_SRC_ACCESS_ORDER_STREAM`: sources are read when the stream reaches the copy.
    static final int STREAM_ORDER = 1;

    /// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
    private static final int HOST = 1;

    private static final int DEVICE = 2;

    private final DriverFunction toDevice = bind(DriverCall.MEMCPY_HTOD_ASYNC, "LLLL");
    private final DriverFunction toHost = bind(DriverCall.MEMCPY_DTOH_ASYNC, "LLLL");
    private final DriverFunction onDevice = bind(DriverCall.MEMCPY_DTOD_ASYNC, "LLLL");
    private final DriverFunction anywhere = bind(DriverCall.MEMCPY_ASYNC, "LLLL");
    private final DriverFunction pointerAttribute = bind(DriverCall.POINTER_GET_ATTRIBUTE, "LIL");
    private final DriverFunction betweenDevices = bind(DriverCall.MEMCPY_PEER_ASYNC, "LLLLLL");
    private final DriverFunction rows = bind(DriverCall.MEMCPY_2D_ASYNC, "LL");
    private final DriverFunction batch = bind(DriverCall.MEMCPY_BATCH_ASYNC, "LLLLLLLL");
    private final boolean takesBatches;
    private final DriverFunction fillBytes = bind(DriverCall.MEMSET_D8_ASYNC, "LILL");
    private final DriverFunction fillShorts = bind(DriverCall.MEMSET_D16_ASYNC, "LILL");
    private final DriverFunction fillWords = bind(DriverCall.MEMSET_D32_ASYNC, "LILL");

    NativeCopies(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
        takesBatches = batch.present();
    }

    @Override
    public void toDevice(int device, long target, MemorySegment source, long byteSize, long stream) {
        copy(toDevice, device, target, hostAddress(source, byteSize), byteSize, stream, target, target);
    }

    @Override
    public void arrayToDevice(int device, long target, MemorySegment array, long stream) {
        long byteSize = array.byteSize();
        if (byteSize == 0) {
            return;
        }
        try (Frame frame = contexts.enter(toDevice, device)) {
            int code = toDevice.callWithArray(frame, target, array, byteSize, stream);
            if (isOnHost(frame, code, target, target)) {
                code = anywhere.callWithArray(frame, target, array, byteSize, stream);
            }
            toDevice.check(code, "device, target, byteSize, stream", device, target, byteSize, stream);
        }
    }

    @Override
    public void toHost(int device, MemorySegment target, long source, long byteSize, long stream) {
        copy(toHost, device, hostAddress(target, byteSize), source, byteSize, stream, source, source);
    }

    @Override
    public void onDevice(int device, long target, long source, long byteSize, long stream) {
        copy(onDevice, device, target, source, byteSize, stream, target, source);
    }

    /// @param one an address that is expected to be on a device
    /// @param other another such address, or the same one
    private void copy(
            DriverFunction copy,
            int device,
            long target,
            long source,
            long byteSize,
            long stream,
            long one,
            long other) {
        if (byteSize == 0) {
            return;
        }
        try (Frame frame = contexts.enter(copy, device)) {
            int code = copy.call(frame, target, source, byteSize, stream);
            if (isOnHost(frame, code, one, other)) {
                code = anywhere.call(frame, target, source, byteSize, stream);
            }
            copy.check(code, "device, target, source, byteSize, stream", device, target, source, byteSize, stream);
        }
    }

    /// Returns whether a copy was refused because one of two addresses that the driver knows is on the host.
    private boolean isOnHost(Frame frame, int code, long one, long other) {
        if (code != CudaResult.INVALID_VALUE.code()) {
            return false;
        }
        int first = memoryType(frame, one);
        int second = memoryType(frame, other);
        return (first == HOST && second != 0) || (first == DEVICE && second == HOST);
    }

    /// Returns 0 if the driver does not know the address.
    private int memoryType(Frame frame, long address) {
        int code = pointerAttribute.call(frame, frame.zeroedOut(), PointerAttribute.MEMORY_TYPE.code(), address);
        return code == 0 ? frame.outInt() : 0;
    }

    @Override
    public void betweenDevices(
            int targetDevice, long target, int sourceDevice, long source, long byteSize, long stream) {
        if (byteSize == 0) {
            return;
        }
        long targetContext = contexts.primary(betweenDevices, targetDevice);
        long sourceContext = contexts.primary(betweenDevices, sourceDevice);
        try (Frame frame = contexts.enter(betweenDevices, sourceDevice)) {
            int code = betweenDevices.call(frame, target, targetContext, source, sourceContext, byteSize, stream);
            betweenDevices.check(
                    code,
                    "peer, target, device, source, byteSize, stream",
                    targetDevice,
                    target,
                    sourceDevice,
                    source,
                    byteSize,
                    stream);
        }
    }

    @Override
    public void rows(
            int device,
            long target,
            long targetPitch,
            long source,
            long sourcePitch,
            long rowBytes,
            long rows,
            long stream) {
        if (rowBytes == 0 || rows == 0) {
            return;
        }
        try (Frame frame = contexts.enter(this.rows, device)) {
            long copy = Structs.copyOfRows(frame, target, targetPitch, source, sourcePitch, rowBytes, rows);
            int code = this.rows.call(frame, copy, stream);
            if (code != 0) {
                throw this.rows.failed(
                        code,
                        Arguments.text("device, target, source, stream", device, target, source, stream)
                                + ", rowBytes=" + rowBytes + ", rows=" + rows + ", pitches " + targetPitch + " and "
                                + sourcePitch);
            }
        }
    }

    @Override
    public boolean takesBatches() {
        return takesBatches;
    }

    @Override
    public void batch(int device, List<Piece> pieces, long stream) {
        int count = pieces.size();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment targets = arena.allocate(JAVA_LONG, count);
            MemorySegment sources = arena.allocate(JAVA_LONG, count);
            MemorySegment byteSizes = arena.allocate(JAVA_LONG, count);
            for (int i = 0; i < count; i++) {
                Piece piece = pieces.get(i);
                targets.setAtIndex(JAVA_LONG, i, piece.target());
                sources.setAtIndex(JAVA_LONG, i, piece.source());
                byteSizes.setAtIndex(JAVA_LONG, i, piece.byteSize());
            }
            // One set of attributes, which applies from piece 0 on.
            MemorySegment attributes = arena.allocate(Structs.COPY_ATTRIBUTES);
            attributes.set(JAVA_INT, 0, STREAM_ORDER);
            MemorySegment firstPiece = arena.allocate(JAVA_LONG);
            try (Frame frame = contexts.enter(batch, device)) {
                int code = batch.call(
                        frame,
                        targets.address(),
                        sources.address(),
                        byteSizes.address(),
                        count,
                        attributes.address(),
                        firstPiece.address(),
                        1,
                        stream);
                batch.check(code, "device, count, stream", device, count, stream);
            }
        }
    }

    // In C, the caller widens an unsigned char or short.

    @Override
    public void fillBytes(int device, long target, byte value, long byteSize, long stream) {
        fill(fillBytes, device, "device, target, value, byteSize, stream", target, value & 0xff, byteSize, stream);
    }

    @Override
    public void fillShorts(int device, long target, short value, long count, long stream) {
        fill(fillShorts, device, "device, target, value, count, stream", target, value & 0xffff, count, stream);
    }

    @Override
    public void fillWords(int device, long target, int value, long count, long stream) {
        fill(fillWords, device, "device, target, value, count, stream", target, value, count, stream);
    }

    private void fill(DriverFunction fill, int device, String names, long target, long value, long count, long stream) {
        if (count != 0) {
            run(fill, device, names, target, value, count, stream);
        }
    }
}
