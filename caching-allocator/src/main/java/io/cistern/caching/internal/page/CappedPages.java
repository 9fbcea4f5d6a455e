package io.cistern.caching.internal.page;

import io.cistern.cuda.MemoryLocation;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import java.util.List;

/// Physical memory up to a [cap][ReserveCap]. The source itself is closed by whoever opened it.
public record CappedPages(PageSource source, ReserveCap cap) implements PageSource {
    @Override
    public PageTraits traits(int device) {
        return source.traits(device);
    }

    @Override
    public long create(long byteSize, int device) {
        cap.take(byteSize);
        boolean created = false;
        try {
            long handle = source.create(byteSize, device);
            created = true;
            return handle;
        } finally {
            cap.returned(created ? 0 : byteSize);
        }
    }

    @Override
    public List<MemoryLocation> accessors(int device) {
        return source.accessors(device);
    }

    @Override
    public void mapped(int device, long address, long byteSize, long handle) {
        source.mapped(device, address, byteSize, handle);
    }

    @Override
    public boolean unmapping(int device, long address, long byteSize) {
        return source.unmapping(device, address, byteSize);
    }

    @Override
    public void release(long handle, long byteSize, int device) {
        source.release(handle, byteSize, device);
        cap.returned(byteSize);
    }
}
