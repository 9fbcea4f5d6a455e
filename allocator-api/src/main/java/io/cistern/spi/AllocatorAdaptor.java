package io.cistern.spi;

import java.util.Optional;
import java.util.OptionalLong;

/// An allocator that adds something to another allocator, its upstream. Every call except [#close] goes on
/// to the upstream, unless the subclass overrides the method.
///
/// The code that opened the upstream closes it, after the adaptor. For an adaptor opened from a spec, that is
/// the framework.
///
/// **Book-keeping by address.** A subclass that remembers blocks must forget a block *before* it calls the
/// upstream's `free`: as soon as that call begins, another thread may get the address.
///
/// **Threads and streams.** As [DeviceAllocator] says.
public abstract class AllocatorAdaptor implements DeviceAllocator {
    private final DeviceAllocator upstream;

    /// Builds on an allocator, which the adaptor does not close.
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

    /// Returns this adaptor if it has the ability, else what the upstream returns. Given the class of an
    /// adaptor, the method returns that adaptor. An adaptor that keeps freed blocks, or hands out addresses
    /// other than its upstream's, must override this method and return only abilities of its own. Above
    /// all, it must not return these abilities of the upstream:
    ///
    /// - [StreamUses] and [MemorySharing], which take the address of a block of the upstream. The upstream
    ///   would also wait for recorded uses at its own `free`, which the adaptor may call later.
    /// - [MemoryReclaim], whose trims would bypass the adaptor.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(this) ? Optional.of(type.cast(this)) : upstream.extension(type);
    }
}
