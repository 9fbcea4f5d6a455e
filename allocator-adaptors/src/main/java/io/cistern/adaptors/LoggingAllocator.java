package io.cistern.adaptors;

import io.cistern.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.Optional;

/// Notes each block that comes and goes in a [TraceLog], which [#extension] finds.
///
/// A block's id is its address: it is noted as freed before the upstream can hand the address out again, so that in
/// the log no id is allocated while it is live.
public final class LoggingAllocator extends AllocatorAdaptor {
    private final TraceLog log;
    private final boolean ownsLog;

    /// Sets the log, which stays the caller's to close; several allocators may share one.
    public LoggingAllocator(DeviceAllocator upstream, TraceLog log) {
        this(upstream, log, false);
    }

    private LoggingAllocator(DeviceAllocator upstream, TraceLog log, boolean ownsLog) {
        super(upstream);
        this.log = log;
        this.ownsLog = ownsLog;
    }

    /// With a log that is closed together with the allocator.
    static LoggingAllocator owning(DeviceAllocator upstream, TraceLog log) {
        return new LoggingAllocator(upstream, log, true);
    }

    /// The log.
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

    @Override
    public void streamClosing(int device, long stream) {
        log.streamEnds(device, stream);
        upstream().streamClosing(device, stream);
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
