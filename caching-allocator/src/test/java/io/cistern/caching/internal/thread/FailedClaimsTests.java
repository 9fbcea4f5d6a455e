package io.cistern.caching.internal.thread;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.internal.threads.ThreadTable;
import io.cistern.spi.EventSink;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

/// A failure while the thread caches of all threads are emptied.
@Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
class FailedClaimsTests {
    private static final int THREADS = 3;

    private final ThreadCaches threadCaches = new ThreadCaches(
            new ThreadCache[ThreadTable.ENTRIES],
            0,
            32L << 20,
            new DeviceCounters(0, mock(EventSink.class)),
            new AddressRangeMap());

    @Test
    void everyThreadCacheIsItsThreadsAgain() throws Exception {
        try (var threads = Executors.newFixedThreadPool(THREADS)) {
            List<Future<ThreadCache>> made = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                made.add(threads.submit(() -> threadCaches.threads.ownElsewhere()));
            }
            for (Future<ThreadCache> threadCache : made) {
                threadCache.get();
            }
            assertThatThrownBy(() -> threadCaches.end(fullHeap(), new AddressBatch()))
                    .isInstanceOf(OutOfMemoryError.class);
            for (Future<ThreadCache> threadCache : made) {
                assertThat(threadCache.get().tryEnter()).isTrue();
                threadCache.get().leave();
            }
        }
    }

    /// Fails in the first thread cache.
    private static List<Shard> fullHeap() {
        return new AbstractList<>() {
            @Override
            public Shard get(int index) {
                throw new OutOfMemoryError("as if the Java heap were full");
            }

            @Override
            public int size() {
                return 1;
            }
        };
    }
}
