package io.cistern.hazards;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Streams;
import java.lang.reflect.Proxy;
import org.junit.jupiter.api.Test;

/// When the check hears of a call.
class WatchedDriverTests {
    private static final long STREAM = 100;
    private static final long ADDRESS = 4096;
    private static final long BYTES = 64;

    /// The driver may give the handle to a new stream of another thread before the call returns.
    @Test
    void aStreamIsNotTakenForTheNextOneOfItsHandle() {
        WatchedDriver[] watched = new WatchedDriver[1];
        Streams streams = streams(() -> write(watched[0]));
        watched[0] = new WatchedDriver(driver(streams));
        watched[0].hazards.uses(uses -> uses.pinned(ADDRESS, BYTES));
        watched[0].streams().destroy(0, STREAM);
        write(watched[0]);
        assertThat(watched[0].hazards.list()).isEmpty();
    }

    private static void write(WatchedDriver driver) {
        driver.hazards.work("work", 0, STREAM, new Range(ADDRESS, BYTES, true));
    }

    private static CudaDriver driver(Streams streams) {
        CudaDriver.Facets facets =
                new CudaDriver.Facets(null, null, null, null, null, null, streams, null, null, null, null, null);
        return (CudaDriver) Proxy.newProxyInstance(
                CudaDriver.class.getClassLoader(),
                new Class<?>[] {CudaDriver.class},
                (_, method, _) -> method.getName().equals("streams") ? streams : facets);
    }

    private static Streams streams(Runnable atDestroy) {
        return (Streams) Proxy.newProxyInstance(
                Streams.class.getClassLoader(), new Class<?>[] {Streams.class}, (_, method, _) -> {
                    if (method.getName().equals("destroy")) {
                        atDestroy.run();
                        return null;
                    }
                    return true;
                });
    }
}
