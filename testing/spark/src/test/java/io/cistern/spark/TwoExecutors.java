package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/// A cluster of two workers, an executor on each with a small simulated device of its own.
final class TwoExecutors implements AutoCloseable {
    private final SparkCluster cluster;
    private final SparkSession session;

    TwoExecutors(Path home) throws IOException {
        cluster = SparkCluster.start(home, 2);
        session = SparkSession.builder()
                .master(cluster.master())
                .appName("cluster")
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.ui.enabled", "false")
                .config("spark.plugins", CisternPlugin.class.getName())
                .config("spark.executor.memory", "512m")
                .config("spark.executor.cores", "2")
                .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
                .config("spark.executor.resource.gpu.amount", "1")
                .config("spark.task.resource.gpu.amount", "0.5")
                .config("spark.cistern.task.limit", "none")
                .config("spark.cistern.driver", "simulated")
                .config("spark.cistern.simulated.capacity", "8MiB")
                .config("spark.cistern.pinned", "4m")
                .config("spark.cistern.figures.interval", "100ms")
                .config("spark.sql.shuffle.partitions", "4")
                .config("spark.speculation", "true")
                .config("spark.speculation.interval", "100ms")
                .config("spark.speculation.multiplier", "3")
                .config("spark.speculation.quantile", "0.5")
                .config("spark.speculation.minTaskRuntime", "3s")
                .getOrCreate();
        assertThat(Eventually.holds(() -> alive().size() == 2)).isTrue();
    }

    static List<ExecutorFigures> alive() {
        return ClusterFigures.ofProcess().alive();
    }

    /// Waits until each executor says that its tasks have ended and its device is empty.
    static void assertNothingAllocated() {
        assertThat(Eventually.holds(() -> alive().size() == 2
                        && alive().stream()
                                .allMatch(each -> each.tasks().running() == 0
                                        && each.device().requestedBytes() == 0
                                        && each.spill().hostBytes()
                                                        + each.spill().fileBytes()
                                                == 0)))
                .isTrue();
    }

    SparkSession session() {
        return session;
    }

    JavaSparkContext context() {
        return JavaSparkContext.fromSparkContext(session.sparkContext());
    }

    /// Kills an executor with SIGKILL.
    void kill(String executorId) {
        cluster.kill(executorId);
    }

    @Override
    public void close() {
        session.stop();
        cluster.close();
    }
}
