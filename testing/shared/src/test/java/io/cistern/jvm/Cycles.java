package io.cistern.jvm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Opens, uses and closes something again and again, and fails if anything stays in the process: Java heap, a
/// thread, a descriptor or a property.
public final class Cycles {
    /// Java heap that one cycle may leave, in bytes.
    private static final long MOST_BYTES_EACH = 500;

    /// Java heap that all cycles together may leave for reuse, such as the numbers of drained routes.
    private static final long MOST_RESTING_BYTES = 2 << 20;

    private Cycles() {}

    /// Opens, uses and closes something.
    public interface Cycle {
        void run() throws Exception;
    }

    private record Holdings(Set<String> threads, long descriptors, Properties properties) {
        static Holdings now() throws IOException {
            ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            Set<String> names = Arrays.stream(threads.getThreadInfo(threads.getAllThreadIds()))
                    .filter(info -> info != null)
                    .map(info -> info.getThreadName())
                    .collect(Collectors.toCollection(TreeSet::new));
            try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
                return new Holdings(names, descriptors.count(), (Properties)
                        System.getProperties().clone());
            }
        }
    }

    /// Runs cycles to warm up, then as many again.
    public static void assertNothingStays(int times, Cycle cycle) throws Exception {
        repeat(times, cycle);
        long heapBefore = usedHeap();
        Holdings before = Holdings.now();
        repeat(times, cycle);
        long heapBytes = usedHeap() - heapBefore;
        Holdings after = Holdings.now();
        assertThat(after.threads()).isSubsetOf(before.threads()); // others' threads may have ended meanwhile
        assertThat(after.descriptors()).isLessThanOrEqualTo(before.descriptors());
        assertThat(after.properties()).isEqualTo(before.properties());
        assertThat(heapBytes)
                .as("bytes of Java heap that %s cycles leave", times)
                .isLessThan(times * MOST_BYTES_EACH + MOST_RESTING_BYTES);
    }

    private static void repeat(int times, Cycle cycle) throws Exception {
        for (int i = 0; i < times; i++) {
            cycle.run();
        }
    }

    private static long usedHeap() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(20); // for cleaners and reference queues
        }
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }
}
