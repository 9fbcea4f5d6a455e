package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import java.util.List;

/// Lowers the ceilings of all threads' counters to what they requested, so that a [Meter] knows how much that is
/// together.
///
/// Allocates nothing on the Java heap, but for what the fence may need.
///
/// **Threads.** One at a time, under the meter's lock.
final class Recall {
    private static final Step CLAIM = (recall, tally) -> {
        recall.threads = Math.max(recall.threads, ++recall.lanesOfRoute);
        recall.anyClaimed |= tally.claim();
    };
    private static final Step SETTLE = (recall, tally) -> tally.settle(recall);
    private static final Step GIVE_UP = (_, tally) -> tally.giveUpClaim();

    private final List<Route> routes;

    /// By how much ceilings were lowered together.
    long bytes;

    /// The most that one thread's counters stayed below its ceiling before.
    long unused;

    /// The threads' counters that count for the route that has the most of them.
    int threads;

    private int lanesOfRoute;
    private boolean anyClaimed;

    /// @param routes those of the meter
    Recall(List<Route> routes) {
        this.routes = routes;
    }

    /// Lowers them. After an error some are as before, and [#bytes] tells of the others.
    void run() {
        bytes = 0;
        unused = 0;
        threads = 0;
        anyClaimed = false;
        try {
            forEachTally(CLAIM);
            if (anyClaimed) {
                if (ProcessFence.isSupported()) {
                    ProcessFence.everywhere();
                }
                forEachTally(SETTLE);
            }
        } finally {
            if (anyClaimed) {
                forEachTally(GIVE_UP);
            }
        }
    }

    private interface Step {
        void take(Recall recall, Tally tally);
    }

    private void forEachTally(Step step) {
        for (int i = 0; i < routes.size(); i++) {
            Route route = routes.get(i);
            ThreadTable threads = route.threads;
            lanesOfRoute = 0;
            for (int counters = 0; counters < threads.count(); counters++) {
                Tally tally = threads.counters(counters).find(route);
                if (tally != null) {
                    step.take(this, tally);
                }
            }
        }
    }
}
