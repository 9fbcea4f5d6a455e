package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.StreamUses;
import java.util.Optional;

/// Writes to a [TraceLog]: each allocation and free, each recorded use on another stream, each wait of a
/// [io.cistern.CudaStream], and each announced end of a stream. [#extension] returns the log.
///
/// A block's id is its address. A free is logged before the upstream can hand out the address again, so the
/// log never shows an allocation whose id is still live.
public final class LoggingAllocator extends AllocatorAdaptor implements StreamUses {
    private final TraceLog log;
    private final boolean ownsLog;

    /// Wraps an allocator. The caller closes the log; several allocators may share it.
    public LoggingAllocator(DeviceAllocator upstream, TraceLog log) {
        this(upstream, log, false);
    }

    private LoggingAllocator(DeviceAllocator upstream, TraceLog log, boolean ownsLog) {
        super(upstream);
        this.log = log;
        this.ownsLog = ownsLog;
    }

    /// Returns an allocator that closes the log when it is closed.
    static LoggingAllocator owning(DeviceAllocator upstream, TraceLog log) {
        return new LoggingAllocator(upstream, log, true);
    }

    /// Returns the log.
    public TraceLog log() {
        return log;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address;
        try {
            address = upstream().allocate(byteSize, device, stream);
        } catch (DeviceOutOfMemoryException failure) {
            log.refused(byteSize, device, stream);
            throw failure;
        }
        log.allocated(address, byteSize, device, stream);
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        log.freed(address, byteSize, device, stream);
        upstream().free(address, byteSize, device, stream);
    }

    /// {@inheritDoc}
    ///
    /// Logs the use, whether the upstream or the framework handles it.
    @Override
    public boolean recordUse(long address, int device, long stream) {
        boolean taken = upstream()
                .extension(StreamUses.class)
                .map(uses -> uses.recordUse(address, device, stream))
                .orElse(false);
        log.used(address, device, stream);
        return taken;
    }

    @Override
    public void streamClosing(int device, long stream) {
        log.streamEnds(device, stream);
        upstream().streamClosing(device, stream);
    }

    @Override
    public void streamWaits(int device, long stream, long awaited) {
        log.streamWaits(device, stream, awaited);
        upstream().streamWaits(device, stream, awaited);
    }

    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(log) ? Optional.of(type.cast(log)) : super.extension(type);
    }

    @Override
    public void close() {
        if (ownsLog) {
            log.close();
        }
    }
}
