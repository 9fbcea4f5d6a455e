package io.cistern.internal.leaks;

import io.cistern.spi.DeviceAllocator;
import java.util.Optional;
import java.util.OptionalLong;

/// An allocator whose blocks are recorded.
final class RecordingAllocator implements DeviceAllocator {
    private final DeviceAllocator allocator;
    private final BlockSites sites;

    RecordingAllocator(DeviceAllocator allocator, BlockSites sites) {
        this.allocator = allocator;
        this.sites = sites;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address = allocator.allocate(byteSize, device, stream);
        sites.allocated(address, byteSize, stream);
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        sites.freeing(address);
        allocator.free(address, byteSize, device, stream);
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        return allocator.reservedBytes(device);
    }

    @Override
    public long trim(int device, long keepBytes) {
        return allocator.trim(device, keepBytes);
    }

    @Override
    public void streamClosing(int device, long stream) {
        allocator.streamClosing(device, stream);
    }

    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return allocator.extension(type);
    }

    @Override
    public void close() {
        allocator.close();
    }
}
