package io.cistern.caching;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import java.util.HashMap;
import java.util.Map;

/// Physical memory that counts its handles and ends at a capacity.
class TestPages implements PageSource {
    final Map<Long, Long> live = new HashMap<>();
    long capacity;
    long creates;
    private long lastHandle;

    TestPages(long capacity) {
        this.capacity = capacity;
    }

    @Override
    public PageTraits traits(int device) {
        return new PageTraits(2 << 20, "device", "none", false);
    }

    @Override
    public synchronized long create(long byteSize, int device) {
        if (liveBytes() + byteSize > capacity) {
            throw new DeviceOutOfMemoryException(byteSize, device, "the test's pages end here");
        }
        creates++;
        live.put(++lastHandle, byteSize);
        return lastHandle;
    }

    @Override
    public synchronized void release(long handle, long byteSize, int device) {
        if (!live.remove(handle, byteSize)) {
            throw new AssertionError("handle " + handle + " of " + byteSize + " bytes is not live");
        }
    }

    synchronized long liveBytes() {
        return live.values().stream().mapToLong(Long::longValue).sum();
    }
}
