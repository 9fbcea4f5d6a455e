package io.cistern.simulated;

import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.Modules;
import io.cistern.cuda.PoolAttribute;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/// A simulated machine with what tests need on top: the memory kernels and a flag for latches.
final class MachineFixture implements AutoCloseable {
    static final long MIB = 1L << 20;
    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();
    private static final String TEXT = """
            .version 7.0
            .target sm_70
            .visible .entry cistern_latch(.param .u64 f) { ret; }
            .visible .entry cistern_count_mismatches_u32(.param .u64 a) { ret; }
            .visible .entry cistern_write_sequence_u32(.param .u64 a) { ret; }
            .visible .entry cistern_count_sequence_mismatches_u32(.param .u64 a) { ret; }
            .visible .entry custom(.param .u64 a) { ret; }
            """;

    final SimulatedGpu gpu;
    final MemorySegment host;
    private final long module;

    MachineFixture(SimulatedGpu gpu) {
        this.gpu = gpu;
        host = gpu.memory().allocateHost(0, 4096);
        module = gpu.modules().load(0, TEXT);
    }

    static MachineFixture h200() {
        return new MachineFixture(SimulatedGpu.builder().devices(1).build());
    }

    static MachineFixture withDevices(int count) {
        return new MachineFixture(SimulatedGpu.builder().devices(count).build());
    }

    static MachineFixture withCapacity(long byteSize) {
        return new MachineFixture(
                SimulatedGpu.builder().devices(1).capacityBytes(byteSize).build());
    }

    long stream() {
        return gpu.streams().create(0);
    }

    void launch(String kernel, long stream, Object... arguments) {
        long function = gpu.modules().function(0, module, kernel);
        gpu.modules().launch(0, function, Modules.Grid.of(1, 1), stream, arguments);
    }

    /// Holds a stream until [#open].
    void hold(long stream) {
        WORD.setVolatile(host, 0L, 0);
        launch("cistern_latch", stream, host.address());
    }

    void open() {
        WORD.setVolatile(host, 0L, 1);
    }

    /// The first word at a device address, read in the order of a stream.
    int read(long address, long stream) {
        MemorySegment word = host.asSlice(1024, 4);
        gpu.copies().toHost(0, word, address, 4, stream);
        gpu.streams().synchronize(0, stream);
        return word.get(ValueLayout.JAVA_INT, 0);
    }

    /// How many words differ from `expected`, counted by the kernel in the order of a stream.
    long mismatches(long address, long count, int expected, long stream) {
        MemorySegment counter = host.asSlice(2048, 8);
        counter.set(ValueLayout.JAVA_LONG, 0, 0);
        launch("cistern_count_mismatches_u32", stream, address, count, expected, counter.address());
        gpu.streams().synchronize(0, stream);
        return counter.get(ValueLayout.JAVA_LONG, 0);
    }

    long pool(long threshold) {
        long pool = gpu.pools().create(MemoryPoolProperties.onDevice(0));
        gpu.pools().setAttribute(0, pool, PoolAttribute.RELEASE_THRESHOLD, threshold);
        return pool;
    }

    long reserved(long pool) {
        return gpu.pools().attribute(0, pool, PoolAttribute.RESERVED_CURRENT);
    }

    @Override
    public void close() {
        gpu.close();
    }
}
