package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import java.util.List;

/// Lowers the ceilings of all lanes to what they requested, so that a [Meter] knows how much that is together.
///
/// Allocates nothing on the Java heap, but for what the fence may need.
///
/// **Threads.** One at a time, under the meter's lock.
final class Recall {
    private static final Step CLAIM = (recall, tally) -> {
        recall.lanes = Math.max(recall.lanes, ++recall.lanesOfRoute);
        recall.anyClaimed |= tally.claim();
    };
    private static final Step SETTLE = (recall, tally) -> tally.settle(recall);
    private static final Step GIVE_UP = (_, tally) -> tally.giveUpClaim();

    private final List<Route> routes;

    /// By how much ceilings were lowered together.
    long bytes;

    /// The most that one lane stayed below its ceiling before.
    long unused;

    /// The lanes that count for the route that has the most of them.
    int lanes;

    private int lanesOfRoute;
    private boolean anyClaimed;

    /// @param routes those of the meter
    Recall(List<Route> routes) {
        this.routes = routes;
    }

    /// Lowers them. After an error they are as before.
    void run() {
        bytes = 0;
        unused = 0;
        lanes = 0;
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
            Lanes lanes = route.lanes;
            lanesOfRoute = 0;
            for (int lane = 0; lane < lanes.count(); lane++) {
                Tally tally = lanes.lane(lane).find(route);
                if (tally != null) {
                    step.take(this, tally);
                }
            }
        }
    }
}
