import io.cistern.DeviceMemory;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.HandlePoolStatistics;
import io.cistern.handles.HandleStrategy;
import io.cistern.simulated.SimulatedGpu;
import java.util.Collections;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/// How the threads of an executor of Apache Spark live: jobs of 64 tasks with 16 cores, with pauses shorter and longer
/// than the minute after which Spark ends an idle thread.
/// java --class-path "$SPARK:$CISTERN" SparkHandleThreads.java SHARED
public final class SparkHandleThreads {
    private static final SimulatedGpu GPU = SimulatedGpu.builder().build();
    private static final DeviceMemory MEMORY = DeviceMemory.builder(GPU).open();
    private static HandlePool<Object> pool;

    static HandlePool<Object> pool() {
        return pool;
    }

    public static void main(String[] arguments) throws Exception {
        HandleStrategy strategy = HandleStrategy.valueOf(arguments[0]);
        pool = HandlePool.open(
                MEMORY,
                HandleLibrary.of("none", _ -> new Object(), _ -> {}, (_, _) -> {}),
                HandlePoolOptions.DEFAULT.withStrategy(strategy));
        int[] pauses = {0, 1, 5, 65, 1, 65, 1};
        SparkConf configuration = new SparkConf()
                .setMaster("local[16]")
                .setAppName("threads")
                .set("spark.ui.enabled", "false");
        try (JavaSparkContext spark = new JavaSparkContext(configuration)) {
            for (int seconds : pauses) {
                Thread.sleep(1000L * seconds);
                spark.parallelize(Collections.nCopies(64, 1), 64).foreach(_ -> {
                    pool().handle(0, 7);
                    Thread.sleep(10);
                });
            }
            HandlePoolStatistics counted = pool.statistics(0);
            System.out.println("threads,strategy,tasks,platform threads,threads ended,mean life ms,leases,created,shared,peak");
            System.out.println("Spark executor," + strategy + "," + 64 * pauses.length + "," + counted.threads() + ","
                    + counted.lifeSpans().count() + "," + counted.lifeSpans().meanNanos() / 1_000_000 + ","
                    + counted.leases() + "," + counted.created() + "," + counted.shared() + "," + counted.peak());
        }
        MEMORY.close();
    }
}
