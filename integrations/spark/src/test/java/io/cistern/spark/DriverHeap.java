package io.cistern.spark;

import io.cistern.spark.ExecutorFigures.DeviceFigures;
import io.cistern.spark.ExecutorFigures.PoolFigures;
import io.cistern.spark.ExecutorFigures.SpillFigures;
import io.cistern.spark.ExecutorFigures.TaskFigures;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/// Measures what the driver's side of the plug-in keeps in the Java heap while a thousand executors report again and
/// again, in messages as Spark sends them. Prints a line of JSON after 1, 10 and 100 reports of each.
public final class DriverHeap {
    private static final int EXECUTORS = 1_000;
    private static final int REPORTS = 100;
    private static final int COLLECTIONS = 4;

    private final DriverSide driver = new DriverSide();
    private long receivedBytes;

    private DriverHeap() {}

    /// Runs it.
    public static void main(String[] arguments) throws Exception {
        new DriverHeap().run();
    }

    private void run() throws Exception {
        long before = usedBytes();
        for (int report = 1; report <= REPORTS; report++) {
            for (int executor = 0; executor < EXECUTORS; executor++) {
                receive(message(executor, report));
            }
            if (report == 1 || report == 10 || report == REPORTS) {
                System.out.printf(
                        Locale.ROOT,
                        "{\"executors\":%d,\"reportsOfEach\":%d,\"receivedBytes\":%d,\"heapBytes\":%d}%n",
                        EXECUTORS,
                        report,
                        receivedBytes,
                        usedBytes() - before);
            }
        }
        receive(message(0, REPORTS + 1)); // so that the driver's side lives until here
    }

    private void receive(byte[] message) throws IOException, ClassNotFoundException {
        receivedBytes += message.length;
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(message))) {
            driver.receive(in.readObject());
        }
    }

    /// Figures with as many pools as there may be.
    private static byte[] message(int executor, int report) throws IOException {
        List<PoolFigures> pools = IntStream.range(0, ExecutorFigures.MAX_POOLS)
                .mapToObj(pool -> new PoolFigures(new TaskName(report, 0, pool, 0, pool), pool, pool, pool))
                .toList();
        ExecutorFigures figures = new ExecutorFigures(
                "" + executor,
                "host-" + executor,
                report,
                new DeviceFigures(0, "GPU", false, "caching", 1, 1, 1, 1, 1),
                new SpillFigures(0, 0, 0, 0, 0, 0, 0, 0),
                new TaskFigures(0, report, 0, 0, 0, 0, 0, 0, 0),
                pools);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(figures);
        }
        return bytes.toByteArray();
    }

    @SuppressWarnings("CallToSystemGC")
    private static long usedBytes() throws InterruptedException {
        for (int collection = 0; collection < COLLECTIONS; collection++) {
            System.gc();
            Thread.sleep(50);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
