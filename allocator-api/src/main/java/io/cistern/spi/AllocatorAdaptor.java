package io.cistern.spi;

import java.util.Optional;
import java.util.OptionalLong;

/// An allocator that adds something to another allocator, its upstream. Every method except [#close] calls
/// the upstream's, unless the subclass overrides it.
///
/// The code that opened the upstream closes it, after the adaptor. If the adaptor is opened from a spec,
/// the framework does.
///
/// **Records by address.** A subclass that keeps records of blocks must remove a block's record *before* it
/// calls the upstream's `free`: as soon as that call begins, another thread may get the address.
///
/// **Threads and streams.** As for [DeviceAllocator].
public abstract class AllocatorAdaptor implements DeviceAllocator {
    private final DeviceAllocator upstream;

    /// Creates an adaptor of an allocator, which the adaptor does not close.
    protected AllocatorAdaptor(DeviceAllocator upstream) {
        this.upstream = upstream;
    }

    /// Returns the allocator that this one builds on.
    public final DeviceAllocator upstream() {
        return upstream;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        return upstream.allocate(byteSize, device, stream);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        upstream.free(address, byteSize, device, stream);
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        return upstream.reservedBytes(device);
    }

    @Override
    public long trim(int device, long keepBytes) {
        return upstream.trim(device, keepBytes);
    }

    @Override
    public void streamClosing(int device, long stream) {
        upstream.streamClosing(device, stream);
    }

    @Override
    public void streamWaits(int device, long stream, long awaited) {
        upstream.streamWaits(device, stream, awaited);
    }

    /// Returns this adaptor if it is an instance of the type, else the upstream's extension of that type.
    /// An adaptor that keeps freed blocks, or hands out addresses other than its upstream's, must override
    /// this method and return only abilities of its own. Above all, it must not return these abilities of
    /// the upstream:
    ///
    /// - [StreamUses] and [MemorySharing], which take the address of a block of the upstream. Also, the
    ///   upstream waits for recorded uses only after its own `free`, which the adaptor may call much later.
    /// - [MemoryReclaim], whose trims would bypass the adaptor.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(this) ? Optional.of(type.cast(this)) : upstream.extension(type);
    }
}
