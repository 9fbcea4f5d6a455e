package io.cistern.caching;

import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;

/// Physical memory up to a [cap][ReserveCap]. The source itself is closed by whoever opened it.
record CappedPages(PageSource source, ReserveCap cap) implements PageSource {
    @Override
    public PageTraits traits(int device) {
        return source.traits(device);
    }

    @Override
    public long create(long byteSize, int device) {
        return cap.obtain(byteSize, bytes -> source.create(bytes, device));
    }

    @Override
    public void release(long handle, long byteSize, int device) {
        source.release(handle, byteSize, device);
        cap.returned(byteSize);
    }
}
