package io.cistern.buffers.internal;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.Registration;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Streams;
import io.cistern.internal.order.EndedStreams;
import java.util.List;
import java.util.stream.IntStream;

/// Finds the stream after whose work a buffer is moved, copied, or given back to its owner: the buffer's own or, if
/// that has ended, one that comes after all work of the device.
///
/// **Threads.** Any.
public final class LastStreams implements AutoCloseable {
    private final CudaDriver driver;
    private final ModuleSupport support;
    private final List<EndedStreams> ended;
    private final Registration announced;

    /// Whether ends of streams are no longer recorded.
    private volatile boolean closed;

    private LastStreams(DeviceMemory memory) {
        driver = memory.driver();
        support = memory.moduleSupport();
        ended = IntStream.range(0, driver.devices().count())
                .mapToObj(device -> new EndedStreams(device, support.streams()))
                .toList();
        announced = memory.listeners()
                .onStreamClosing((device, stream) -> ended.get(device).closing(stream));
    }

    /// Ends of streams are recorded from the first call on.
    public static LastStreams of(DeviceMemory memory) {
        return memory.moduleSupport().attachment(LastStreams.class, LastStreams::new);
    }

    @Override
    public void close() {
        closed = true;
        announced.close();
        ended.forEach(EndedStreams::close);
    }

    /// Notes that a buffer is for use on a stream, which exists.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void opened(int device, long stream) {
        ended.get(device).opened(stream);
    }

    /// Returns whether a stream has ended, or may have.
    private boolean hasEnded(int device, long stream) {
        boolean isDefault = Long.compareUnsigned(stream, Streams.PER_THREAD_DEFAULT) <= 0;
        return !isDefault && (closed || ended.get(device).contains(stream));
    }

    /// Returns a stream whose later work runs after the work of a buffer's stream.
    ///
    /// @throws io.cistern.cuda.CudaException if the stream has ended and the driver refuses, as it does during
    ///     captures
    public long streamFor(int device, long stream) {
        return hasEnded(device, stream) ? support.streamBehindAll(device) : stream;
    }

    /// Makes the return of a buffer wait for an event: the buffer's stream or, if that has ended, the host.
    public void await(int device, long stream, long event) {
        if (hasEnded(device, stream)) {
            driver.events().synchronize(device, event);
        } else {
            driver.streams().await(device, stream, event);
        }
    }
}
