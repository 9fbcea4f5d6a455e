package io.cistern.spark;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// Collects the driver's figures of all executors: the last figures of each living executor, the sums
/// and the last few of executors that are gone, and the last leaks. Its size depends only on the
/// number of living executors.
///
/// **Threads.** Any.
final class ClusterFigures {
    static final int MAX_GONE = 20;
    static final int MAX_LEAKS = 50;

    /// The figures of the application in this process, which runs one at a time.
    private static final AtomicReference<@Nullable ClusterFigures> OF_PROCESS = new AtomicReference<>();

    private final Map<String, ExecutorFigures> alive = new TreeMap<>();
    private final Map<String, ExecutorFigures> gone;
    private final Map<LeakPlace, LeakReport> leaks = bounded(MAX_LEAKS);
    private ClusterTotal ofGone = ClusterTotal.NONE;

    ClusterFigures() {
        this(MAX_GONE);
    }

    /// @param mostGone the most executors that are gone whose last figures are kept
    ClusterFigures(int mostGone) {
        gone = bounded(mostGone);
    }

    static void ofProcess(ClusterFigures figures) {
        OF_PROCESS.set(figures);
    }

    /// @throws IllegalStateException if this process runs no driver of an application with the plug-in
    static ClusterFigures ofProcess() {
        ClusterFigures figures = OF_PROCESS.get();
        if (figures == null) {
            throw new IllegalStateException("no driver with the plug-in runs in this process");
        }
        return figures;
    }

    /// Identifies a leak: leaks of one stage at one place are counted together.
    private record LeakPlace(int stage, String site) {}

    private static <K, V> Map<K, V> bounded(int most) {
        return new LinkedHashMap<>() {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
                return size() > most;
            }
        };
    }

    /// Replaces an executor's figures. Late figures of an executor that is gone are ignored.
    synchronized void update(ExecutorFigures executor) {
        if (!gone.containsKey(executor.executorId())) {
            alive.put(executor.executorId(), executor);
        }
    }

    /// Moves an executor's figures to those that are gone, and returns its last figures.
    synchronized Optional<ExecutorFigures> removed(String executorId) {
        ExecutorFigures last = alive.remove(executorId);
        if (last == null) {
            return Optional.empty();
        }
        gone.put(executorId, last);
        ofGone = ofGone.plus(last, false);
        return Optional.of(last);
    }

    synchronized void add(LeakReport leak) {
        leaks.merge(
                new LeakPlace(leak.task().stage(), leak.site()),
                leak,
                (before, now) -> new LeakReport(
                        now.executorId(),
                        now.task(),
                        now.site(),
                        before.blocks() + now.blocks(),
                        before.byteSize() + now.byteSize()));
    }

    synchronized long executorCount() {
        return alive.size();
    }

    synchronized List<ExecutorFigures> alive() {
        return List.copyOf(alive.values());
    }

    synchronized List<ExecutorFigures> gone() {
        return List.copyOf(gone.values());
    }

    synchronized List<LeakReport> leaks() {
        return List.copyOf(leaks.values());
    }

    /// Returns the sums over all executors, living or gone.
    synchronized ClusterTotal total() {
        return sum(ofGone, alive.values());
    }

    private static ClusterTotal sum(ClusterTotal start, Collection<ExecutorFigures> executors) {
        ClusterTotal sum = start;
        for (ExecutorFigures each : executors) {
            sum = sum.plus(each, true);
        }
        return sum;
    }
}
