package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

/// A failure while the lanes of all threads are emptied.
@Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
class FailedClaimsTest {
    private static final int THREADS = 3;

    private final Lanes lanes = new Lanes(0, 64L << 20, new DeviceCounters(Long.MAX_VALUE));

    @Test
    void everyLaneIsItsThreadsAgain() throws Exception {
        try (var threads = Executors.newFixedThreadPool(THREADS)) {
            List<Future<Lane>> made = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                made.add(threads.submit(() -> lanes.adoptOrMake(Thread.currentThread())));
            }
            for (Future<Lane> lane : made) {
                lane.get();
            }
            assertThatThrownBy(() -> lanes.end(fullHeap(), new AddressBatch())).isInstanceOf(OutOfMemoryError.class);
            for (Future<Lane> lane : made) {
                assertThat(lane.get().enter()).isTrue();
                lane.get().leave();
            }
        }
    }

    /// Fails in the first lane.
    private static List<StreamShard> fullHeap() {
        return new AbstractList<>() {
            @Override
            public StreamShard get(int index) {
                throw new OutOfMemoryError("as if the Java heap were full");
            }

            @Override
            public int size() {
                return 1;
            }
        };
    }
}
