package io.cistern.adaptors;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Writes the events of a program's device memory as a trace of format 2, which `cistern replay` reads;
/// see `docs/trace-format.md`. A [LoggingAllocator] logs allocations and frees, the uses that the
/// program [records][io.cistern.DeviceMemory#recordUse], the waits of [io.cistern.CudaStream]s, and the ends of
/// streams. The allocator can't see waits that other code makes, or uses that are not recorded. The program
/// can log these itself:
///
/// ```java
/// driver.events().record(device, event, producer);
/// driver.streams().await(device, consumer, event);
/// log.streamWaits(device, consumer, producer);              // right after the wait
/// launch(kernel, address, consumer);
/// log.used(address, device, consumer);
/// ```
///
/// The log orders the rows of all threads; each thread's rows are in the order of its calls. Writing a
/// row takes a short lock and reads the clock, and creates no garbage. The log ends after a given
/// number of rows.
///
/// After an I/O error, the log stops writing, and [#failure] returns the error. A log that is still
/// open when the process ends is completed by a shutdown hook.
///
/// **Threads.** Any thread may call any method at any time.
public final class TraceLog implements AutoCloseable {
    /// The maximum number of rows by default, which is also the maximum that `cistern replay` reads.
    public static final long DEFAULT_MAX_ROWS = 1L << 23;

    static final String HEADER = "op,id,bytes,stream,device,thread,nanos";
    private static final System.Logger LOG = System.getLogger(TraceLog.class.getName());

    private final Path path;
    private final long maxRows;
    private final long start = System.nanoTime();
    private final Thread atExit = Thread.ofPlatform()
            .inheritInheritableThreadLocals(false) // nor the caller's class loader
            .name("cistern-trace-log")
            .unstarted(this::end);
    private final ReentrantLock lock = new ReentrantLock();

    // Guarded by the lock.
    private @Nullable TraceFile file;
    private @Nullable IOException failure;
    private long rows;
    private long droppedRows;

    private TraceLog(Path path, long maxRows, TraceFile file) {
        this.path = path;
        this.maxRows = maxRows;
        this.file = file;
    }

    /// Opens a log of at most [#DEFAULT_MAX_ROWS] rows; otherwise like [#open(Path, long)].
    ///
    /// @throws UncheckedIOException if the file can't be written, or another log is writing it
    public static TraceLog open(Path path) {
        return open(path, DEFAULT_MAX_ROWS);
    }

    /// Opens a log in a file, which is created or truncated; it is gzipped if its name ends in `.gz`.
    ///
    /// @param maxRows the number of rows, at least 0, after which the log ends; later rows are counted as
    ///     dropped
    /// @throws IllegalArgumentException if `maxRows` is negative
    /// @throws UncheckedIOException if the file can't be written, or another log is writing it
    public static TraceLog open(Path path, long maxRows) {
        if (maxRows < 0) {
            throw new IllegalArgumentException("maxRows must be at least 0, not " + maxRows);
        }
        try {
            TraceLog log = new TraceLog(path, maxRows, new TraceFile(path, HEADER));
            Runtime.getRuntime().addShutdownHook(log.atExit);
            return log;
        } catch (IOException e) {
            throw new UncheckedIOException("trace " + path + " can't be written: " + e.getMessage(), e);
        }
    }

    /// Logs that `stream` was made to wait for all work enqueued so far on `awaited`.
    ///
    /// @param device the device of both streams
    public void streamWaits(int device, long stream, long awaited) {
        add('w', awaited, 0, stream, device);
    }

    /// Logs a use of a block: work that uses the block was enqueued on `stream`. The call is needed only
    /// for a stream other than that of the block's allocation.
    ///
    /// @param address the start of a live block; readers ignore other addresses
    public void used(long address, int device, long stream) {
        add('u', address, 0, stream, device);
    }

    /// Logs that a stream ends, and that another stream may reuse its handle.
    public void streamEnds(int device, long stream) {
        add('e', 0, 0, stream, device);
    }

    void allocated(long address, long byteSize, int device, long stream) {
        add('a', address, byteSize, stream, device);
    }

    void refused(long byteSize, int device, long stream) {
        add('o', 0, byteSize, stream, device);
    }

    void freed(long address, long byteSize, int device, long stream) {
        add('f', address, byteSize, stream, device);
    }

    private void add(char op, long id, long byteSize, long stream, int device) {
        long thread = Thread.currentThread().threadId();
        lock.lock();
        try {
            if (file == null || rows == maxRows) {
                droppedRows++;
                return;
            }
            rows++;
            file.row(op, id, byteSize, stream, device, thread, System.nanoTime() - start);
        } catch (IOException e) {
            fail(e);
        } finally {
            lock.unlock();
        }
    }

    /// Writes all rows logged so far to the file, so that other processes can read them. In a gzipped
    /// file, some rows stay in the compressor until [#close].
    ///
    /// @return whether all rows so far could be written; if not, [#failure] returns the error
    public boolean flush() {
        lock.lock();
        try {
            if (file != null) {
                file.flush();
            }
        } catch (IOException e) {
            fail(e);
        } finally {
            lock.unlock();
        }
        return failure().isEmpty();
    }

    /// Returns the number of rows written so far.
    public long rows() {
        return locked(() -> rows);
    }

    /// Returns the number of rows that were not written because the log had reached its maximum, had
    /// failed, or was closed.
    public long droppedRows() {
        return locked(() -> droppedRows);
    }

    /// Returns why the log ended early, if the file failed; else empty.
    public Optional<IOException> failure() {
        return locked(() -> Optional.ofNullable(failure));
    }

    /// Completes the file. Does not throw; closing the log again does nothing.
    @Override
    public void close() {
        end();
        try {
            Runtime.getRuntime().removeShutdownHook(atExit);
        } catch (IllegalStateException e) {
            // The process is ending, and the hook with it.
        }
    }

    private void end() {
        lock.lock();
        try {
            closeFile();
        } catch (IOException e) {
            fail(e);
        } finally {
            lock.unlock();
        }
    }

    private void fail(IOException e) {
        failure = e;
        try {
            closeFile();
        } catch (IOException second) {
            e.addSuppressed(second);
        }
        LOG.log(System.Logger.Level.WARNING, "trace " + path + " ends early: " + e.getMessage());
    }

    private void closeFile() throws IOException {
        TraceFile ending = file;
        file = null;
        if (ending != null) {
            ending.close();
        }
    }

    private <T> T locked(java.util.function.Supplier<T> reader) {
        lock.lock();
        try {
            return reader.get();
        } finally {
            lock.unlock();
        }
    }
}
