package io.cistern.internal.leaks;

import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;

/// An allocator whose blocks are recorded. It stands for the allocator everywhere, so it closes it too.
final class RecordingAllocator extends AllocatorAdaptor {
    private final BlockSites sites;

    RecordingAllocator(DeviceAllocator allocator, BlockSites sites) {
        super(allocator);
        this.sites = sites;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long address = upstream().allocate(byteSize, device, stream);
        sites.allocated(address, byteSize, stream);
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        try {
            sites.freeing(address);
        } finally { // losing a record is better than losing the block
            upstream().free(address, byteSize, device, stream);
        }
    }

    @Override
    public void close() {
        upstream().close();
    }
}
