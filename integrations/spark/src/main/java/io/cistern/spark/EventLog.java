package io.cistern.spark;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListenerEvent;

/// Writes to Spark's event log: each executor's last figures, each leak, and the sums after each job. The history
/// server [reads them][HistoryPlugin].
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

    /// Writes the figures of the executors that were there to the end.
    void applicationEnded() {
        figures.alive().forEach(this::removed);
    }

    void jobEnded() {
        post(new CisternTotal(figures.total()));
    }

    private void post(SparkListenerEvent event) {
        sc.listenerBus().post(event);
    }
}
