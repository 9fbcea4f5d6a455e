package io.cistern.spark;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobEnd;

/// Writes to Spark's event log, in Spark's driver: each executor's last figures when it goes away or the application
/// ends, each leak, and the sums after each job. The history server [reads them][HistoryPlugin].
final class EventLog extends SparkListener {
    private final SparkContext sc;
    private final ClusterFigures figures;

    EventLog(SparkContext sc, ClusterFigures figures) {
        this.sc = sc;
        this.figures = figures;
    }

    void leaked(LeakReport leak) {
        post(new CisternLeak(leak));
    }

    private void removed(ExecutorFigures last) {
        post(new CisternExecutor(last));
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
        figures.removed(removed.executorId()).ifPresent(this::removed);
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
        figures.alive().forEach(this::removed);
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd jobEnd) {
        post(new CisternTotal(figures.total()));
    }

    private void post(SparkListenerEvent event) {
        sc.listenerBus().post(event);
    }
}
