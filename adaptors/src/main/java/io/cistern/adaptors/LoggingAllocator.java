package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.StreamUses;
import java.util.Optional;

/// Notes each block that comes and goes, recorded uses on other streams, and waits that a
/// [io.cistern.CudaStream] makes, in a [TraceLog], which [#extension] finds.
///
/// A block's id is its address: it is noted as freed before the upstream can hand the address out again, so that in
/// the log no id is allocated while it is live.
public final class LoggingAllocator extends AllocatorAdaptor implements StreamUses {
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

    /// {@inheritDoc}
    ///
    /// Notes the use, whoever takes care of it.
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
