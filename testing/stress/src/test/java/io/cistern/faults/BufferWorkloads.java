package io.cistern.faults;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.buffers.CopyBatch;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.CopyOptions;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.ManagedMemory;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.buffers.PinnedRegion;
import io.cistern.buffers.dlpack.Dlpack;
import io.cistern.buffers.dlpack.DlpackTensor;
import io.cistern.buffers.dlpack.TensorLayout;
import io.cistern.buffers.dlpack.TensorType;
import io.cistern.cuda.MemoryLocation;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;

/// What programs do with buffers, arenas, pinned memory and tensors.
@SuppressWarnings("restricted") // it calls a tensor's deleter, as a consumer does
final class BufferWorkloads {
    private static final int BYTES = 40_000;
    private static final MethodHandle DELETER =
            Linker.nativeLinker().downcallHandle(FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));

    private BufferWorkloads() {}

    private static DeviceBuffer buffer(GpuProgram program, int stream) {
        return opened(program, DeviceBuffer.allocate(program.memory, BYTES, 0, program.streams[stream]));
    }

    private static <T extends AutoCloseable> T opened(GpuProgram program, T made) {
        program.toClose.add(made);
        return made;
    }

    /// Buffers that are shared, cut, resized, handed over and used elsewhere.
    static void views(GpuProgram program) {
        DeviceBuffer buffer = buffer(program, 0);
        buffer.recordUse(program.streams[1]);
        DeviceBuffer part = opened(program, buffer.retainedSlice(256, 1000));
        DeviceBuffer again = opened(program, part.retainedSlice(0, 10));
        buffer.slice(0, 100).fill((byte) 1);
        DeviceBuffer copy = opened(program, buffer.copy());
        DeviceBuffer larger = opened(program, copy.resize(2 * BYTES));
        DeviceBuffer moved = opened(program, larger.moveToStream(program.streams[2]));
        DeviceBuffer smaller = opened(program, moved.resize(100));
        smaller.withAddress(_ -> {});
        DeviceBuffer roomy = opened(program, smaller.reserve(3 * BYTES));
        opened(program, roomy.shrinkToFit()).closeAfter(program.event(2));
        again.closeAfter(program.event(1));
        part.close();
        buffer.close();
        DeviceBuffer used = buffer(program, 0);
        used.recordUse(program.streams[1]);
        used.close();
        buffer(program, 0).closeAfter(program.event(1));
    }

    /// Memory of others, which they take back.
    static void foreign(GpuProgram program) {
        long address = program.allocate(BYTES, 0);
        DeviceBuffer borrowed = opened(
                program, DeviceBuffer.ofBorrowed(program.memory, address, BYTES, 0, program.streams[1], (_, _) -> {}));
        borrowed.recordUse(program.streams[2]);
        borrowed.slice(0, 10).fill((byte) 2);
        borrowed.close();
        program.free(address, 1);
        boolean[] theirs = {true};
        long others = program.gpu.memory().allocate(0, BYTES);
        program.toClose.add(() -> {
            if (theirs[0]) {
                program.gpu.memory().free(0, others);
            }
        });
        long kept = program.gpu.memory().allocate(0, BYTES);
        program.toClose.add(() -> program.gpu.memory().free(0, kept));
        opened(program, DeviceBuffer.ofForeign(program.memory, kept, BYTES, 0, program.streams[1]))
                .close();
        opened(program, DeviceBuffer.ofForeign(program.memory, others, BYTES, 0, program.streams[1], (at, _) -> {
                    theirs[0] = false;
                    program.gpu.memory().free(0, at);
                }))
                .close();
    }

    /// Copies between arrays, pageable and pinned memory, and the device.
    static void copies(GpuProgram program) {
        DeviceBuffer one = buffer(program, 0);
        DeviceBuffer two = buffer(program, 1);
        MemorySegment array = MemorySegment.ofArray(new byte[BYTES]);
        one.copyFrom(array);
        two.copyFrom(one);
        two.copyTo(array);
        one.copyFrom(array, program.streams[0], CopyMode.NON_BLOCKING);
        CopyOptions.of(program.memory).copyArraysDirectly(true).reportPageableCopies(true);
        one.copyFrom(array);
        CopyOptions.of(program.memory).copyArraysDirectly(false);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pageable = arena.allocate(BYTES);
            one.copyFrom(pageable);
            one.copyTo(pageable);
        }
        PinnedBuffer pinned = opened(program, PinnedMemory.of(program.memory).allocate(BYTES));
        one.copyTo(pinned, program.streams[0], CopyMode.NON_BLOCKING);
        two.copyFrom(pinned, program.streams[1], CopyMode.NON_BLOCKING);
        two.rows(0, 200, 100, 100).copyFrom(one.rows(0, 200, 100, 100), program.streams[0]);
        two.rows(0, 200, 100, 100).copyTo(array, 100, program.streams[0]);
        two.rows(0, 200, 100, 100).copyFrom(pinned, 100, program.streams[0], CopyMode.NON_BLOCKING);
        new CopyBatch()
                .toDevice(one, pinned)
                .toHost(pinned, two)
                .toDevice(one.slice(0, 100), array.asSlice(0, 100))
                .toHost(array.asSlice(0, 100), one.slice(0, 100))
                .onDevice(two.slice(200, 100), one.slice(200, 100))
                .submit(program.streams[0], CopyMode.BLOCKING);
        two.elements(ValueLayout.JAVA_INT).fill(7);
        two.elements(ValueLayout.JAVA_INT).set(3, 8);
        two.elements(ValueLayout.JAVA_INT).getInt(3);
        two.elements(ValueLayout.JAVA_INT).slice(0, 10).toInts();
        two.elements(ValueLayout.JAVA_LONG).set(3, 8L);
        two.elements(ValueLayout.JAVA_LONG).slice(0, 10).toLongs();
        two.elements(ValueLayout.JAVA_FLOAT).set(3, 8F);
        two.elements(ValueLayout.JAVA_FLOAT).slice(0, 10).toFloats();
        two.elements(ValueLayout.JAVA_DOUBLE).set(3, 8D);
        two.elements(ValueLayout.JAVA_DOUBLE).slice(0, 10).toDoubles();
        two.elements(ValueLayout.JAVA_SHORT).set(3, (short) 8);
        two.elements(ValueLayout.JAVA_SHORT).slice(0, 10).toShorts();
        two.elements(ValueLayout.JAVA_BYTE).set(3, (byte) 8);
        two.elements(ValueLayout.JAVA_BYTE).slice(0, 10).toBytes();
        pinned.close();
        two.close();
        one.close();
    }

    /// Memory that the host sees, prefetched.
    private static void managed(GpuProgram program) {
        Allocator managed = program.memory.open("managed");
        program.toClose.add(managed);
        DeviceBuffer seen = opened(program, DeviceBuffer.allocate(managed, BYTES, 0, program.streams[0]));
        seen.hostView();
        CudaStream stream = CudaStream.ofForeign(program.memory, 0, program.streams[0]);
        ManagedMemory.prefetch(List.of(seen), MemoryLocation.device(0), stream);
        ManagedMemory.attributes(seen);
        ManagedMemory.attributes(seen.slice(0, 0));
        seen.close();
    }

    /// Pinned memory in many sizes, used by streams that end.
    static void pinned(GpuProgram program) {
        PinnedMemory memory = PinnedMemory.of(program.memory);
        try (Arena arena = Arena.ofConfined();
                PinnedRegion region = memory.register(arena.allocate(4096, 4096))) {
            region.segment();
        }
        managed(program);
        for (int round = 0; round < 3; round++) {
            for (long byteSize : new long[] {100, 5000, 300_000, 3 << 20}) {
                PinnedBuffer block = opened(program, memory.allocate(byteSize));
                block.recordUse(0, program.streams[0]);
                block.recordUse(0, program.streams[1]);
                block.close();
            }
            program.endStream(round % 2);
        }
        memory.trim();
        PinnedBuffer busy = opened(program, memory.allocate(5000));
        program.gpu.keepBusy(0, program.streams[2], 1_000_000);
        busy.recordUse(0, program.streams[2]);
        program.endStream(2);
        busy.close();
        opened(program, memory.allocate(0)).close();
    }

    /// Arenas that grow and are reset.
    static void arenas(GpuProgram program) {
        DeviceArena.Builder builder = DeviceArena.builder(program.memory).firstBytes(100_000);
        DeviceArena shared = opened(program, builder.shared().open(0, program.streams[0]));
        use(program, shared);
        shared.close();
        try (DeviceArena confined = builder.confined().open(0, program.streams[0])) {
            use(program, confined);
        }
    }

    private static void use(GpuProgram program, DeviceArena arena) {
        for (int generation = 0; generation < 3; generation++) {
            for (int block = 0; block < 6; block++) {
                arena.buffer(BYTES).recordUse(program.streams[1]);
            }
            arena.allocate(500_000);
            arena.reset();
        }
    }

    /// Tensors that others hold and delete, and tensors of others.
    static void tensors(GpuProgram program) {
        TensorLayout layout = TensorLayout.compact(TensorType.FLOAT32, 8, 8);
        for (long stream : new long[] {-1, program.streams[1]}) {
            DeviceBuffer buffer = buffer(program, 0);
            long[] tensor = {Dlpack.share(buffer, layout, stream)};
            program.toClose.add(() -> delete(tensor));
            buffer.close();
            delete(tensor);
        }
        DeviceBuffer buffer = buffer(program, 0);
        long[] tensor = {Dlpack.share(buffer, layout, program.streams[1])};
        program.toClose.add(() -> delete(tensor));
        CudaStream consumer = CudaStream.ofForeign(program.memory, 0, program.streams[1]);
        DlpackTensor taken = opened(program, Dlpack.take(tensor[0], consumer));
        tensor[0] = 0;
        taken.buffer().fill((byte) 1);
        taken.close();
        buffer.close();
    }

    /// Once, as the protocol wants it.
    private static void delete(long[] tensor) {
        long address = tensor[0];
        tensor[0] = 0;
        if (address != 0) {
            long deleter = MemorySegment.ofAddress(address).reinterpret(80).get(ValueLayout.JAVA_LONG, 16);
            try {
                DELETER.invoke(MemorySegment.ofAddress(deleter), address);
            } catch (Throwable failure) {
                throw new AssertionError(failure);
            }
        }
    }
}
