package io.cistern.spark;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListenerEvent;

/// Writes to Spark's event log: each executor's last figures, each leak, and the sums after each job.
final class EventLog {
    private final SparkContext sc;
    private final ClusterFigures figures;

    EventLog(SparkContext sc, ClusterFigures figures) {
        this.sc = sc;
        this.figures = figures;
    }

    void leaked(LeakReport leak) {
        post(new CisternLeak(leak));
    }

    void removed(ExecutorFigures last) {
        post(new CisternExecutor(last));
    }

    void jobEnded() {
        post(new CisternTotal(figures.total()));
    }

    private void post(SparkListenerEvent event) {
        sc.listenerBus().post(event);
    }
}
