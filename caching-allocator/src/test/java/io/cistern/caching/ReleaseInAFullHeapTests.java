package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.spi.TrimMode;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Pages whose release fails for lack of Java heap, after they have left all tables. They are released later.
final class ReleaseInAFullHeapTests {
    private static final long STREAM = 0x1000;
    private static final long BYTES = 6 << 20;

    private final Set<Long> failing = new HashSet<>();
    private final TestPages pages = new TestPages(64 << 20) {
        @Override
        public synchronized void release(long handle, long byteSize, int device) {
            if (failing.remove(handle)) {
                throw new OutOfMemoryError("in a test");
            }
            super.release(handle, byteSize, device);
        }
    };

    @Test
    void whatCouldNotBeReleasedIsReleasedWithTheNextTrim() {
        CachingAllocator caching = TestContext.caching(pages);
        long address = caching.allocate(BYTES, 0, STREAM);
        caching.free(address, BYTES, 0, STREAM);
        failing.addAll(pages.live.keySet());
        caching.trim(0, 0, TrimMode.SYNCHRONIZE);
        assertThat(pages.live).isNotEmpty();
        caching.checkInvariants();
        caching.trim(0, 0, TrimMode.SYNCHRONIZE);
        assertThat(pages.live).isEmpty();
        caching.free(caching.allocate(BYTES, 0, STREAM), BYTES, 0, STREAM);
        caching.checkInvariants();
        caching.close();
    }
}
