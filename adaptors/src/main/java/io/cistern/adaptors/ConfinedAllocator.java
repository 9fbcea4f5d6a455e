package io.cistern.adaptors;

import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.StreamUses;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Lets one thread alone, its owner, call the upstream, which therefore needs no locks; a call that another
/// thread makes by mistake is found.
///
/// Frees are the exception, since a block may end anywhere: those of other threads wait, and the owner passes
/// them on with its next call. Streams of waiting frees must still exist then, so the owner calls something (a
/// `trim` will do) before they are destroyed.
///
/// **Threads.** [#allocate], [#trim] and [#streamClosing] by the owner; [#free], [#reservedBytes] and [#extension] by
/// any;
/// [#close] by any, once no other call is under way.
public final class ConfinedAllocator extends AllocatorAdaptor {
    private final Thread owner;
    private final Queue<Free> waiting = new ConcurrentLinkedQueue<>();

    private record Free(long address, long byteSize, int device, long stream) {}

    /// Makes the calling thread the owner.
    public ConfinedAllocator(DeviceAllocator upstream) {
        super(upstream);
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
            waiting.add(new Free(address, byteSize, device, stream));
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

    /// Of the owner's waits alone.
    @Override
    public void streamWaits(int device, long stream, long awaited) {
        if (Thread.currentThread().equals(owner)) {
            upstream().streamWaits(device, stream, awaited);
        }
    }

    /// {@inheritDoc}
    ///
    /// The upstream's way to record uses is not offered, since other threads would call it; so the stream of a
    /// free is made to wait for the others.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return type == StreamUses.class ? Optional.empty() : super.extension(type);
    }

    @Override
    public void close() {
        passOn();
    }

    private void enter() {
        if (!Thread.currentThread().equals(owner)) {
            throw new WrongThreadException("this allocator belongs to thread '" + owner.getName() + "', not to '"
                    + Thread.currentThread().getName() + "'");
        }
        passOn();
    }

    private void passOn() {
        for (Free free = waiting.poll(); free != null; free = waiting.poll()) {
            upstream().free(free.address(), free.byteSize(), free.device(), free.stream());
        }
    }
}
