package io.cistern.simulated.internal.memory;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Sharing;
import io.cistern.cuda.process.Descriptor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/// An event that several simulated GPUs see, in one process or in several.
///
/// ```
/// 0       8    16            24                  a file without a name, mapped by all
/// magic   id   last record   last that passed
/// ```
/// 1. To record, a GPU takes the next number. When the stream reaches the record, the number has passed.
/// 2. To wait, a GPU waits until the last number taken has passed. The records of a process that is killed
///    never pass, as on an H200; a driver that is closed lets its own records pass.
/// 3. The handle names the file as `/proc` does, by process and descriptor. The id says whether it is still
///    the same event.
///
/// Invariant: `passed ≤ recorded`.
public final class SharedEvent implements AutoCloseable {
    private static final long MAGIC = 0x31_746e_7665_736943L;
    private static final long BYTES = 32;
    private static final long ID = 8;
    private static final long RECORDED = 16;
    private static final long PASSED = 24;
    private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
    private static final long OWN_PID = ProcessHandle.current().pid();

    /// Null for an event of another process.
    private final @Nullable Descriptor descriptor;

    private final MemorySegment words;

    /// The last record that this process made through this object.
    private long ownRecord;

    private SharedEvent(@Nullable Descriptor descriptor, MemorySegment words) {
        this.descriptor = descriptor;
        this.words = words;
    }

    public static SharedEvent create() {
        try {
            Descriptor made = Descriptor.ofMemory("cistern-simulated-event");
            MemorySegment words = map(Path.of("/proc/self/fd/" + made.number()));
            words.set(ValueLayout.JAVA_LONG, ID, new SplittableRandom().nextLong());
            words.set(ValueLayout.JAVA_LONG, 0, MAGIC);
            return new SharedEvent(made, words);
        } catch (IOException refused) {
            throw new DriverFailure(CudaResult.OPERATING_SYSTEM);
        } catch (UnsupportedOperationException elsewhere) {
            throw new DriverFailure(CudaResult.NOT_SUPPORTED);
        }
    }

    /// Opens the event of a [handle][#handle]. Fails with INVALID_VALUE if the event is gone, or the bytes
    /// are not a handle.
    public static SharedEvent of(byte[] handle) {
        ByteBuffer named = ByteBuffer.wrap(handle);
        DriverFailure.require(named.getLong() == MAGIC);
        Path path = Path.of("/proc/" + named.getLong() + "/fd/" + named.getLong());
        try {
            DriverFailure.require(Files.isRegularFile(path) && Files.size(path) == BYTES);
            MemorySegment words = map(path);
            DriverFailure.require(words.get(ValueLayout.JAVA_LONG, 0) == MAGIC
                    && words.get(ValueLayout.JAVA_LONG, ID) == named.getLong());
            return new SharedEvent(null, words);
        } catch (IOException gone) {
            throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
    }

    private static MemorySegment map(Path path) throws IOException {
        return NativeRange.map(path, MapMode.READ_WRITE, 0, BYTES, Arena.ofAuto());
    }

    /// Returns a handle for another process. Fails with INVALID_HANDLE if the event belongs to another
    /// process.
    public byte[] handle() {
        if (descriptor == null) {
            throw new DriverFailure(CudaResult.INVALID_HANDLE);
        }
        return ByteBuffer.allocate(Sharing.HANDLE_BYTES)
                .putLong(MAGIC)
                .putLong(OWN_PID)
                .putLong(descriptor.number())
                .putLong(words.get(ValueLayout.JAVA_LONG, ID))
                .array();
    }

    /// Takes the next number, for work that calls [#pass] when it ends.
    public long record() {
        ownRecord = (long) WORD.getAndAdd(words, RECORDED, 1L) + 1;
        return ownRecord;
    }

    public void pass(long record) {
        long passed = (long) WORD.getVolatile(words, PASSED);
        while (passed < record && !WORD.weakCompareAndSet(words, PASSED, passed, record)) {
            passed = (long) WORD.getVolatile(words, PASSED);
        }
    }

    public long recorded() {
        return (long) WORD.getVolatile(words, RECORDED);
    }

    public boolean hasPassed(long record) {
        return (long) WORD.getVolatile(words, PASSED) >= record;
    }

    /// Ends this simulated GPU's part: its outstanding record passes.
    public void machineEnds() {
        pass(ownRecord);
        close();
    }

    @Override
    public void close() {
        if (descriptor != null) {
            descriptor.close();
        }
    }
}
