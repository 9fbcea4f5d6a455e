package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.cistern.spi.DeviceAllocator;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// The table of who allocated what.
final class BlockOwnersTests extends TaskFixture {
    private final BlockOwners owners = new BlockOwners();

    private TaskThread[] threads() {
        TaskThread[] all = new TaskThread[3];
        Task[] tasks = {high, middle, low};
        for (int i = 0; i < all.length; i++) {
            Task task = tasks[i];
            all[i] = task.call(() -> TaskThread.CURRENT.get());
        }
        return all;
    }

    @Test
    void itAnswersAsAMapWould() {
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        Random random = new Random(seed);
        TaskThread[] threads = threads();
        Map<Long, TaskThread> map = new HashMap<>();
        for (int i = 0; i < 200_000; i++) {
            long address = 256L * (1 + random.nextInt(20_000));
            if (random.nextBoolean()) {
                TaskThread owner = threads[random.nextInt(threads.length)];
                owners.put(address, owner, 1);
                map.put(address, owner);
            } else {
                assertThat(owners.remove(address, 1)).as("seed %d", seed).isSameAs(map.remove(address));
            }
        }
        assertThat(owners.size()).as("seed %d", seed).isEqualTo(map.size());
    }

    @Test
    void theBytesOfAllBlocksWithOwnersAreCounted() {
        TaskThread owner = threads()[0];
        for (long address = 256; address <= 256 * 100; address += 256) {
            owners.put(address, owner, address);
        }
        for (long address = 512; address <= 256 * 100; address += 256) {
            assertThat(owners.remove(address, address)).isSameAs(owner);
        }
        assertThat(owners.remove(512, 512)).isNull();
        assertThat(owners.heldBytes()).isEqualTo(256);
    }

    @Test
    void aPairInATaskMakesNoGarbage() {
        ThreadMXBean thread = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        TaskArbiter arbiter = new TaskArbiter(new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return 4096;
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {}
        });
        long[] bytes = new long[1];
        arbiter.task(1, 0).run(() -> {
            for (int round = 0; round < 20 && (round < 2 || bytes[0] > 0); round++) {
                long before = thread.getCurrentThreadAllocatedBytes();
                for (int i = 0; i < 20_000; i++) {
                    arbiter.free(arbiter.allocate(1, 0, 0), 1, 0, 0);
                }
                bytes[0] = thread.getCurrentThreadAllocatedBytes() - before;
            }
        });
        assertThat(bytes[0]).isZero();
    }
}
