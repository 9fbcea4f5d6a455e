package io.cistern.spark;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobEnd;

/// Listens in Spark's driver for executors that go away, jobs that end, and the end of the application.
final class ExecutorListener extends SparkListener {
    private final ClusterFigures figures;
    private final EventLog log;

    ExecutorListener(ClusterFigures figures, EventLog log) {
        this.figures = figures;
        this.log = log;
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
        figures.removed(removed.executorId()).ifPresent(log::removed);
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
        log.applicationEnded();
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd jobEnd) {
        log.jobEnded();
    }
}
