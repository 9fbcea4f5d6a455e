package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.Copies;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.simulated.internal.memory.HostSink;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.Consumer;

/// [Copies] over the model.
///
/// A copy from pageable host memory reads the bytes during the call, and a copy to it waits for the stream,
/// as the driver may do. A captured copy reads or writes that memory at each launch.
final class SimulatedCopies implements Copies {
    private final Machine machine;

    SimulatedCopies(Machine machine) {
        this.machine = machine;
    }

    @Override
    public void toDevice(int device, long target, MemorySegment source, long byteSize, long stream) {
        DriverCall call = DriverCall.MEMCPY_HTOD_ASYNC;
        onStream(call, device, target, source.address(), byteSize, stream, queue -> {
            require(byteSize > 0 && source.isNative() && source.address() != 0);
            machine.checkRange(call, queue, target, byteSize, true);
            DeviceView view = machine.view(call, device);
            if (pinned(source.address())) {
                machine.checkRange(call, device, source.address(), byteSize, false);
                move(call, queue, view, target, view, source.address(), byteSize, linkNanos(byteSize));
            } else if (machine.captures.of(queue) == null) {
                stage(call, queue, view, target, source, byteSize);
            } else {
                MemorySegment memory = lasting(source, byteSize);
                machine.give(queue, "copy", each -> {
                    machine.use(call, each, target, byteSize);
                    enqueue(
                            machine,
                            each,
                            linkNanos(byteSize),
                            () -> StagedBytes.of(memory, byteSize).writeTo(view, target));
                });
            }
        });
    }

    /// Returns host memory as a graph refers to it: by its address, whether or not its arena is still open.
    @SuppressWarnings("restricted")
    private static MemorySegment lasting(MemorySegment memory, long byteSize) {
        return MemorySegment.ofAddress(memory.address()).reinterpret(byteSize);
    }

    @Override
    public void arrayToDevice(int device, long target, MemorySegment array, long stream) {
        DriverCall call = DriverCall.MEMCPY_HTOD_ASYNC;
        long byteSize = array.byteSize();
        onStream(call, device, target, 0, byteSize, stream, queue -> {
            machine.checkRange(call, queue, target, byteSize, true);
            machine.captures.refuseCaptured(queue);
            stage(call, queue, machine.view(call, device), target, array, byteSize);
        });
    }

    private void stage(
            DriverCall call, StreamQueue queue, DeviceView view, long target, MemorySegment source, long byteSize) {
        machine.use(call, queue, target, byteSize);
        StagedBytes staged = StagedBytes.of(source, byteSize);
        enqueue(machine, queue, linkNanos(byteSize), () -> staged.writeTo(view, target));
    }

    @Override
    public void toHost(int device, MemorySegment target, long source, long byteSize, long stream) {
        DriverCall call = DriverCall.MEMCPY_DTOH_ASYNC;
        onStream(call, device, target.address(), source, byteSize, stream, queue -> {
            require(byteSize > 0 && target.isNative() && target.address() != 0);
            machine.checkRange(call, queue, source, byteSize, false);
            DeviceView view = machine.view(call, device);
            if (pinned(target.address())) {
                machine.checkRange(call, device, target.address(), byteSize, true);
                move(call, queue, view, target.address(), view, source, byteSize, linkNanos(byteSize));
                return;
            }
            if (machine.captures.of(queue) != null) {
                MemorySegment memory = lasting(target, byteSize);
                machine.give(queue, "copy", each -> {
                    machine.use(call, each, source, byteSize);
                    enqueue(machine, each, linkNanos(byteSize), () -> {
                        StagedBytes bytes = new StagedBytes(byteSize);
                        bytes.readFrom(view, source);
                        bytes.copyTo(memory);
                    });
                });
                return;
            }
            machine.use(call, queue, source, byteSize);
            // The stream reads the bytes when it reaches the copy; the calling thread copies them to the
            // target.
            StagedBytes staged = new StagedBytes(byteSize);
            enqueue(machine, queue, linkNanos(byteSize), () -> staged.readFrom(view, source));
            long last = queue.issued();
            machine.waitUntil(device, () -> queue.completed() >= last);
            machine.hostSaw(queue);
            staged.copyTo(target);
        });
    }

    private boolean pinned(long address) {
        Allocation allocation = machine.space.allocationAt(address);
        return allocation != null && allocation.kind() == Mapping.Kind.HOST;
    }

    @Override
    public void onDevice(int device, long target, long source, long byteSize, long stream) {
        DriverCall call = DriverCall.MEMCPY_DTOD_ASYNC;
        onStream(call, device, target, source, byteSize, stream, queue -> {
            machine.checkRange(call, queue, source, byteSize, false);
            machine.checkRange(call, queue, target, byteSize, true);
            DeviceView view = machine.view(call, device);
            long nanos = nanos(machine, byteSize, machine.costs.copyBytesPerNano());
            move(call, queue, view, target, view, source, byteSize, nanos);
        });
    }

    @Override
    public void betweenDevices(
            int targetDevice, long target, int sourceDevice, long source, long byteSize, long stream) {
        DriverCall call = DriverCall.MEMCPY_PEER_ASYNC;
        machine.run(call, sourceDevice, () -> describe(targetDevice, target, source, byteSize, stream), () -> {
            machine.requireDevice(targetDevice);
            StreamQueue queue = machine.streams.find(call, sourceDevice, stream);
            if (byteSize == 0) {
                return;
            }
            machine.checkRange(call, queue, source, byteSize, false);
            machine.checkRange(call, targetDevice, target, byteSize, true);
            DeviceView from = machine.view(call, sourceDevice);
            DeviceView to = machine.view(call, targetDevice);
            long nanos = nanos(machine, byteSize, machine.costs.peerLinkBytesPerNano());
            move(call, queue, to, target, from, source, byteSize, nanos);
        });
    }

    /// Checks the stream of a call and, unless there is nothing to copy, runs the body.
    private void onStream(
            DriverCall call,
            int device,
            long target,
            long source,
            long byteSize,
            long stream,
            Consumer<StreamQueue> copy) {
        machine.run(call, device, () -> describe(device, target, source, byteSize, stream), () -> {
            StreamQueue queue = machine.streams.find(call, device, stream);
            if (byteSize != 0) {
                copy.accept(queue);
            }
        });
    }

    /// Enqueues a copy between ranges that were checked.
    private void move(
            DriverCall call,
            StreamQueue queue,
            DeviceView to,
            long target,
            DeviceView from,
            long source,
            long byteSize,
            long nanos) {
        machine.give(queue, "copy", each -> {
            machine.use(call, each, source, byteSize);
            machine.use(call, each, target, byteSize);
            enqueue(machine, each, nanos, () -> to.copy(from, source, target, byteSize));
        });
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
        DriverCall call = DriverCall.MEMCPY_2D_ASYNC;
        machine.run(call, device, () -> describe(device, target, source, rows * rowBytes, stream), () -> {
            StreamQueue queue = machine.streams.find(call, device, stream);
            if (rowBytes == 0 || rows == 0) {
                return;
            }
            require(rowBytes > 0 && rows > 0 && targetPitch >= rowBytes && sourcePitch >= rowBytes);
            for (long row = 0; row < rows; row++) {
                machine.checkRange(call, queue, source + row * sourcePitch, rowBytes, false);
                machine.checkRange(call, queue, target + row * targetPitch, rowBytes, true);
            }
            DeviceView view = machine.view(call, device);
            long nanos = rowNanos(target, source, rows * rowBytes);
            machine.give(queue, "copy", each -> {
                for (long row = 0; row < rows; row++) {
                    machine.use(call, each, source + row * sourcePitch, rowBytes);
                    machine.use(call, each, target + row * targetPitch, rowBytes);
                }
                enqueue(machine, each, nanos, () -> {
                    for (long row = 0; row < rows; row++) {
                        view.copy(view, source + row * sourcePitch, target + row * targetPitch, rowBytes);
                    }
                });
            });
        });
    }

    @Override
    public boolean takesBatches() {
        return true;
    }

    /// Copies in reverse order, to expose programs that rely on the order of the pieces. The pieces are
    /// charged as if they ran one by one, with the latency of one.
    @Override
    public void batch(int device, List<Piece> given, long stream) {
        List<Piece> pieces = List.copyOf(given);
        DriverCall call = DriverCall.MEMCPY_BATCH_ASYNC;
        machine.run(call, device, () -> pieces + ", stream=0x" + Long.toHexString(stream), () -> {
            require(!pieces.isEmpty() && stream > Streams.PER_THREAD_DEFAULT);
            StreamQueue queue = machine.streams.find(call, device, stream);
            machine.captures.refuseCaptured(queue);
            for (Piece piece : pieces) {
                require(piece.byteSize() > 0);
                machine.checkRange(call, queue, piece.source(), piece.byteSize(), false);
                machine.checkRange(call, queue, piece.target(), piece.byteSize(), true);
            }
            DeviceView view = machine.view(call, device);
            long nanos = machine.costs.deviceLatencyNanos();
            for (Piece piece : pieces) {
                machine.use(call, queue, piece.source(), piece.byteSize());
                machine.use(call, queue, piece.target(), piece.byteSize());
                nanos +=
                        rowNanos(piece.target(), piece.source(), piece.byteSize()) - machine.costs.deviceLatencyNanos();
            }
            enqueue(machine, queue, nanos, () -> {
                for (Piece piece : pieces.reversed()) {
                    view.copy(view, piece.source(), piece.target(), piece.byteSize());
                }
            });
        });
    }

    private long rowNanos(long target, long source, long byteSize) {
        boolean overLink = pinned(target) || pinned(source);
        return overLink ? linkNanos(byteSize) : nanos(machine, byteSize, machine.costs.copyBytesPerNano());
    }

    @Override
    public void fillBytes(int device, long target, byte value, long byteSize, long stream) {
        int word = (value & 0xff) * 0x0101_0101;
        fill(DriverCall.MEMSET_D8_ASYNC, 1, device, target, word, byteSize, stream);
    }

    @Override
    public void fillShorts(int device, long target, short value, long count, long stream) {
        int word = (value & 0xffff) * 0x1_0001;
        fill(DriverCall.MEMSET_D16_ASYNC, 2, device, target, word, 2 * count, stream);
    }

    @Override
    public void fillWords(int device, long target, int value, long count, long stream) {
        fill(DriverCall.MEMSET_D32_ASYNC, 4, device, target, value, 4 * count, stream);
    }

    private void fill(DriverCall call, int alignment, int device, long target, int word, long byteSize, long stream) {
        onStream(call, device, target, word, byteSize, stream, queue -> {
            require(byteSize > 0 && target % alignment == 0);
            machine.checkRange(call, queue, target, byteSize, true);
            machine.give(queue, "fill", each -> fill(machine, call, each, target, word, byteSize));
        });
    }

    static void fill(Machine machine, DriverCall call, StreamQueue stream, long target, int word, long byteSize) {
        machine.use(call, stream, target, byteSize);
        DeviceView view = machine.view(call, stream.device());
        long nanos = nanos(machine, byteSize, machine.costs.fillBytesPerNano());
        enqueue(machine, stream, nanos, () -> view.fill(target, byteSize, word));
    }

    private static void enqueue(Machine machine, StreamQueue queue, long nanos, Runnable effect) {
        machine.streams.enqueue(queue, Work.of(nanos, machine.effect(queue.device(), effect)));
    }

    private long linkNanos(long byteSize) {
        return nanos(machine, byteSize, machine.costs.hostLinkBytesPerNano());
    }

    private static long nanos(Machine machine, long byteSize, double bytesPerNano) {
        return machine.costs.deviceLatencyNanos() + (long) (byteSize / bytesPerNano);
    }

    private static String describe(int device, long target, long source, long byteSize, long stream) {
        return "device=" + device + ", target=0x" + Long.toHexString(target) + ", source=0x" + Long.toHexString(source)
                + ", byteSize=" + byteSize + ", stream=0x" + Long.toHexString(stream);
    }

    /// Bytes between pageable host memory and the device, in pieces, so that any size fits into Java arrays.
    private static final class StagedBytes {
        private static final int PIECE_BYTES = 1 << 20;
        private final long byteSize;
        private final java.util.List<byte[]> pieces = new java.util.ArrayList<>();

        StagedBytes(long byteSize) {
            this.byteSize = byteSize;
        }

        static StagedBytes of(MemorySegment source, long byteSize) {
            StagedBytes staged = new StagedBytes(byteSize);
            for (long at = 0; at < byteSize; at += PIECE_BYTES) {
                byte[] piece = new byte[(int) Math.min(PIECE_BYTES, byteSize - at)];
                MemorySegment.copy(source, ValueLayout.JAVA_BYTE, at, piece, 0, piece.length);
                staged.pieces.add(piece);
            }
            return staged;
        }

        void writeTo(DeviceView view, long target) {
            for (int i = 0; i < pieces.size(); i++) {
                byte[] piece = pieces.get(i);
                view.write(target + (long) i * PIECE_BYTES, piece, 0, piece.length);
            }
        }

        void readFrom(DeviceView view, long source) {
            for (long at = 0; at < byteSize; at += PIECE_BYTES) {
                byte[] piece = new byte[(int) Math.min(PIECE_BYTES, byteSize - at)];
                MemorySegment whole = MemorySegment.ofArray(piece);
                view.forEachRun(source + at, piece.length, new HostSink(whole, source + at));
                pieces.add(piece);
            }
        }

        void copyTo(MemorySegment target) {
            long at = 0;
            for (byte[] piece : pieces) {
                MemorySegment.copy(piece, 0, target, ValueLayout.JAVA_BYTE, at, piece.length);
                at += piece.length;
            }
        }
    }
}
