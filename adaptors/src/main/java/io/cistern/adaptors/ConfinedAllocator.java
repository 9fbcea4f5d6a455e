package io.cistern.adaptors;

import io.cistern.cuda.Streams;
import io.cistern.internal.names.ThreadNames;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.StreamUses;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Lets only one thread, its owner, allocate and free in the upstream, which therefore needs no locks. An
/// allocation by another thread is an error.
///
/// Any thread may free a block. A free by another thread waits until the owner's next call, which
/// passes it on to the upstream. The stream of a waiting free must still exist at that call, so the
/// owner must make a call, such as a `trim`, before that stream is destroyed. A free on another
/// thread's per-thread default stream (2) is passed on only once the work enqueued there before the
/// free has completed, because on the owner's thread the handle 2 names another stream.
///
/// **Threads.** The owner calls [#allocate], [#trim] and [#streamClosing]; any thread calls [#free],
/// [#reservedBytes] and [#extension]; any thread calls [#close], once no other call is in progress.
public final class ConfinedAllocator extends AllocatorAdaptor {
    private final Thread owner;
    private final Queue<Free> waiting = new ConcurrentLinkedQueue<>();

    private final StreamOrder order;

    /// @param fence marks the free on the other thread's own stream; 0 for none
    private record Free(long address, long byteSize, int device, long stream, long fence) {}

    /// Wraps an allocator, with the calling thread as the owner.
    ///
    /// @param order [AllocatorContext#streams][io.cistern.spi.AllocatorContext#streams]
    public ConfinedAllocator(DeviceAllocator upstream, StreamOrder order) {
        super(upstream);
        this.order = order;
        this.owner = Thread.currentThread();
    }

    /// @throws WrongThreadException if the caller is not the owner
    @Override
    public long allocate(long byteSize, int device, long stream) {
        enter();
        return upstream().allocate(byteSize, device, stream);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        if (Thread.currentThread().equals(owner)) {
            passOn();
            upstream().free(address, byteSize, device, stream);
        } else {
            leave(address, byteSize, device, stream);
        }
    }

    private void leave(long address, long byteSize, int device, long stream) {
        long fence = stream == Streams.PER_THREAD_DEFAULT ? order.record(device, stream) : 0;
        boolean left = false;
        try {
            left = waiting.add(new Free(address, byteSize, device, stream, fence));
        } finally {
            if (!left) {
                order.release(device, fence);
            }
        }
    }

    /// @throws WrongThreadException if the caller is not the owner
    @Override
    public long trim(int device, long keepBytes) {
        enter();
        return upstream().trim(device, keepBytes);
    }

    /// @throws WrongThreadException if the caller is not the owner
    @Override
    public void streamClosing(int device, long stream) {
        enter();
        upstream().streamClosing(device, stream);
    }

    /// Passes waits on to the upstream if the owner made them; ignores those of other threads.
    @Override
    public void streamWaits(int device, long stream, long awaited) {
        if (Thread.currentThread().equals(owner)) {
            upstream().streamWaits(device, stream, awaited);
        }
    }

    /// {@inheritDoc}
    ///
    /// The upstream's [StreamUses] is not offered, since other threads would call it. Instead, the
    /// framework makes the stream of a free wait for the other streams that used the block.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return type == StreamUses.class ? Optional.empty() : super.extension(type);
    }

    @Override
    public void close() {
        waiting.forEach(free -> order.synchronize(free.device(), free.fence()));
        passOn();
    }

    private void enter() {
        if (!Thread.currentThread().equals(owner)) {
            throw new WrongThreadException("this allocator belongs to thread '" + ThreadNames.of(owner) + "', not to '"
                    + ThreadNames.ofCaller() + "'");
        }
        passOn();
    }

    private void passOn() {
        if (!waiting.isEmpty()) { // an empty queue, the usual case, creates no garbage
            waiting.removeIf(this::isPassedOn);
        }
    }

    private boolean isPassedOn(Free free) {
        boolean ready = free.fence() == 0 || order.passed(free.device(), free.fence());
        if (ready) {
            order.release(free.device(), free.fence());
            upstream().free(free.address(), free.byteSize(), free.device(), free.stream());
        }
        return ready;
    }
}
