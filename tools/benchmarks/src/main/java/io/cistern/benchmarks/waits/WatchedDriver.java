package io.cistern.benchmarks.waits;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Events;
import io.cistern.cuda.Streams;
import io.cistern.simulated.CallCosts;
import io.cistern.simulated.SimulatedGpu;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A simulated GPU that tells a busy one what is recorded, awaited and asked. What is asked it answers itself.
final class WatchedDriver {
    private static final Map<DriverCall, CallCosts.Cost> COSTS =
            CallCosts.h200().calls();

    private final CudaDriver driver;
    private final List<Long> streams;
    private final Map<Long, BusyGpu.Mark> marks = new HashMap<>();
    private BusyGpu busy;

    /// @param gpu what answers
    /// @param streams handles, in the order of their numbers
    WatchedDriver(SimulatedGpu gpu, List<Long> streams) {
        this.streams = streams;
        this.busy = new BusyGpu(streams.size());
        Events events = proxy(Events.class, gpu.events(), this::onEvents);
        Streams watched = proxy(Streams.class, gpu.streams(), this::onStreams);
        this.driver = (CudaDriver) Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {CudaDriver.class},
                (_, method, arguments) -> switch (method.getName()) {
                    case "events" -> events;
                    case "streams" -> watched;
                    default -> call(gpu, method, arguments);
                });
    }

    CudaDriver driver() {
        return driver;
    }

    /// From now on, another GPU is told, which has done all that was recorded.
    void watch(BusyGpu fresh) {
        busy = fresh;
        marks.clear();
    }

    private interface Watcher {
        void before(String method, @Nullable Object[] arguments);
    }

    private <T> T proxy(Class<T> facet, T real, Watcher watcher) {
        return facet.cast(
                Proxy.newProxyInstance(facet.getClassLoader(), new Class<?>[] {facet}, (_, method, arguments) -> {
                    watcher.before(method.getName(), arguments);
                    return call(real, method, arguments);
                }));
    }

    private void onEvents(String method, @Nullable Object[] arguments) {
        if (method.equals("record")) {
            busy.spend(nanos(DriverCall.EVENT_RECORD));
            marks.put(handle(arguments[1]), busy.record(streams.indexOf(handle(arguments[2]))));
        } else if (method.equals("hasPassed")) {
            busy.spend(nanos(DriverCall.EVENT_QUERY));
        }
    }

    private void onStreams(String method, @Nullable Object[] arguments) {
        if (method.equals("await")) {
            busy.spend(nanos(DriverCall.STREAM_WAIT_EVENT));
            BusyGpu.Mark mark = marks.get(handle(arguments[2]));
            if (mark != null) { // Else it was recorded in a pass before.
                busy.await(streams.indexOf(handle(arguments[1])), mark);
            }
        } else if (method.equals("isIdle")) {
            busy.spend(nanos(DriverCall.STREAM_QUERY));
        }
    }

    private static Long handle(@Nullable Object argument) {
        return (Long) Objects.requireNonNull(argument);
    }

    private static double nanos(DriverCall call) {
        return Objects.requireNonNull(COSTS.get(call)).nanos();
    }

    private static Object call(Object real, Method method, @Nullable Object[] arguments) throws Throwable {
        try {
            return method.invoke(real, arguments);
        } catch (InvocationTargetException failure) {
            throw failure.getCause();
        }
    }
}
