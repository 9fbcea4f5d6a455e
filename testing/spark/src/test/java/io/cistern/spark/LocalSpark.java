package io.cistern.spark;

import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/// A Spark application in this process, with the plug-in on a small simulated GPU, or on what the property
/// `cistern.driver` names.
final class LocalSpark implements AutoCloseable {
    private static final String SIMULATED = "simulated";
    private static final String DRIVER = System.getProperty("cistern.driver", SIMULATED);

    private final SparkSession session;

    LocalSpark(Map<String, String> settings) {
        SparkSession.Builder builder = SparkSession.builder()
                .master("local[2]")
                .appName("tests")
                .config("spark.ui.enabled", "false")
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.sql.shuffle.partitions", "2")
                .config("spark.plugins", CisternPlugin.class.getName())
                .config("spark.cistern.figures.interval", "100ms")
                .config("spark.cistern.driver", DRIVER);
        if (DRIVER.equals(SIMULATED)) {
            builder.config("spark.cistern.simulated.capacity", "1GiB");
        }
        settings.forEach(builder::config);
        session = builder.getOrCreate();
    }

    LocalSpark() {
        this(Map.of());
    }

    SparkSession session() {
        return session;
    }

    JavaSparkContext context() {
        return JavaSparkContext.fromSparkContext(session.sparkContext());
    }

    @Override
    public void close() {
        session.stop();
    }
}
