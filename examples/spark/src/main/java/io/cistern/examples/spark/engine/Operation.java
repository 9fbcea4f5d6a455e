package io.cistern.examples.spark.engine;

import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Copies;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.SpillableBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// One run of an operator: keeps its inputs on the device, allocates its temporaries and results, and
/// launches its kernels. Closing it frees the temporaries, and the results too unless it
/// [succeeded][#succeeded].
final class Operation implements AutoCloseable {
    private final EngineKernels kernels;
    private final CudaStream stream;
    private final int device;
    private final @Nullable SpillStore spills;
    private final List<SpillableBuffer.Lease> leases = new ArrayList<>();
    private final List<DeviceBuffer> temporaries = new ArrayList<>();
    private final List<Column> results = new ArrayList<>();
    private boolean succeeded;

    Operation(Operators operators) {
        kernels = operators.kernels();
        stream = operators.stream();
        device = operators.device();
        spills = operators.spills();
    }

    /// Launches a kernel. A column among the arguments stands for its address, a flag for 1 or 0.
    void launch(String kernel, long items, Object... arguments) {
        Object[] words = Arrays.stream(arguments)
                .map(each -> switch (each) {
                    case Column column -> address(column);
                    case Boolean flag -> flag ? 1L : 0L;
                    default -> each;
                })
                .toArray();
        kernels.launch("cistern_" + kernel, stream, items, words);
    }

    /// Returns a column's address, which it keeps until the end.
    long address(Column column) {
        SpillableBuffer spillable = column.spillable();
        if (spillable == null) {
            return column.address();
        }
        SpillableBuffer.Lease lease = spillable.acquire(stream.handle());
        leases.add(lease);
        return lease.address();
    }

    /// Returns the address of temporary words with undefined bytes.
    long words(long count) {
        return bytes(count * Long.BYTES);
    }

    /// Returns the address of temporary bytes that are undefined.
    long bytes(long count) {
        DeviceBuffer buffer = DeviceBuffer.allocate(stream.memory(), Math.max(1, count), device, stream.handle());
        temporaries.add(buffer);
        return buffer.address();
    }

    /// Returns the address of temporary words that all have one value.
    long filled(long count, long value) {
        long address = words(count);
        launch("fill", count, count, value, address);
        return address;
    }

    /// Returns a column with undefined content.
    Column result(long count, int width) {
        long byteSize = Math.max(1, count * width);
        Column result = spills == null
                ? Column.of(DeviceBuffer.allocate(stream.memory(), byteSize, device, stream.handle()), count, width)
                : Column.of(spills.allocate(byteSize, device, stream.handle(), 0), count, width);
        results.add(result);
        return result;
    }

    /// Writes the sum of all items before each one, and at last that of all, which it also returns.
    ///
    /// @param flags the address of the items as bytes, or 0
    /// @param words the address of the items as words, or 0
    /// @param out has room for a word more than there are items
    long scan(long flags, long words, long count, long out) {
        scanTiles(flags, words, count, out);
        return read(out + count * Long.BYTES);
    }

    private void scanTiles(long flags, long words, long count, long out) {
        long tiles = count / Operators.TILE + 1;
        long sums = words(tiles);
        launch("scan", tiles * Operators.THREADS, flags, words, count, tiles, out, sums);
        if (tiles > 1) {
            long before = words(tiles + 1);
            scanTiles(0, sums, tiles, before);
            launch("scan_add", count + 1, before, tiles + 1, count + 1, out);
        }
    }

    void copy(long target, long source, long byteSize) {
        copies().onDevice(device, target, source, byteSize, stream.handle());
    }

    private Copies copies() {
        return stream.memory().driver().copies();
    }

    void upload(MemorySegment from, Column to) {
        try (Arena host = Arena.ofConfined()) {
            MemorySegment copy = host.allocate(Math.max(1, from.byteSize())).copyFrom(from);
            copies().toDevice(device, address(to), copy, from.byteSize(), stream.handle());
            stream.synchronize();
        }
    }

    /// Waits for the work so far, then reads a column.
    byte[] download(Column from) {
        return read(address(from), from.byteSize());
    }

    /// Waits for the work so far, then reads a word.
    long read(long address) {
        return ByteBuffer.wrap(read(address, Long.BYTES))
                .order(ByteOrder.nativeOrder())
                .getLong();
    }

    private byte[] read(long address, long byteSize) {
        try (Arena host = Arena.ofConfined()) {
            MemorySegment to = host.allocate(Math.max(1, byteSize));
            copies().toHost(device, to, address, byteSize, stream.handle());
            stream.synchronize();
            return to.asSlice(0, byteSize).toArray(ValueLayout.JAVA_BYTE);
        }
    }

    /// Keeps the results.
    void succeeded() {
        succeeded = true;
    }

    @Override
    public void close() {
        leases.forEach(SpillableBuffer.Lease::close);
        temporaries.forEach(DeviceBuffer::close);
        if (!succeeded) {
            results.forEach(Column::close);
        }
    }
}
