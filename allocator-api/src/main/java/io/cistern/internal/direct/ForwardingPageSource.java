package io.cistern.internal.direct;

import io.cistern.cuda.MemoryLocation;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import java.util.List;

/// Passes the calls for pages on to another source of the same memory.
public interface ForwardingPageSource extends PageSource {
    PageSource source();

    @Override
    default PageTraits traits(int device) {
        return source().traits(device);
    }

    @Override
    default long create(long byteSize, int device) {
        return source().create(byteSize, device);
    }

    @Override
    default List<MemoryLocation> accessors(int device) {
        return source().accessors(device);
    }

    @Override
    default void mapped(int device, long address, long byteSize, long handle) {
        source().mapped(device, address, byteSize, handle);
    }

    @Override
    default boolean unmapping(int device, long address, long byteSize) {
        return source().unmapping(device, address, byteSize);
    }

    @Override
    default void abandoned(int device, long address, long byteSize) {
        source().abandoned(device, address, byteSize);
    }

    @Override
    default void release(long handle, long byteSize, int device) {
        source().release(handle, byteSize, device);
    }
}
