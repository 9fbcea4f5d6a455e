package io.cistern.hazards;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Devices;
import io.cistern.cuda.DriverCapabilities;
import io.cistern.cuda.Events;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Modules;
import io.cistern.cuda.Streams;
import io.cistern.cuda.UnifiedMemory;
import io.cistern.cuda.VirtualMemory;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/// Forwards all calls to a driver, and reports those that use or order memory to [StreamHazards]: before
/// the call, so that it can be refused, or after it, if its result matters.
///
/// **Threads.** As the driver; no lock is held while the driver is called.
final class WatchedDriver implements CudaDriver {
    private interface Look {
        Consumer<Object> before(String name, Object[] arguments);
    }

    /// The action after a call that needs none.
    private static final Consumer<Object> NOTHING = WatchedDriver::nothing;

    final StreamHazards hazards;
    private final CudaDriver driver;
    private final Facets facets;

    /// The uses of captured graphs and of their executables.
    private final Map<Long, Capture> graphs = new ConcurrentHashMap<>();

    WatchedDriver(CudaDriver driver) {
        this.driver = driver;
        this.hazards = new StreamHazards(driver);
        Facets all = driver.facets();
        this.facets = new Facets(
                watched(Devices.class, all.devices(), this::device),
                watched(LinearMemory.class, all.memory(), this::memory),
                watched(UnifiedMemory.class, all.unifiedMemory(), this::managed),
                watched(MemoryPools.class, all.pools(), this::pool),
                watched(VirtualMemory.class, all.virtualMemory(), this::page),
                watched(Copies.class, all.copies(), this::copy),
                watched(Streams.class, all.streams(), this::stream),
                watched(Events.class, all.events(), this::event),
                watched(Graphs.class, all.graphs(), this::graph),
                watched(Modules.class, all.modules(), this::launch),
                all.peers(),
                all.sharing());
    }

    private static <T> T watched(Class<T> facet, T target, Look look) {
        return facet.cast(Proxy.newProxyInstance(
                facet.getClassLoader(), new Class<?>[] {facet}, (_, method, arguments) -> {
                    Consumer<Object> after = arguments == null ? NOTHING : look.before(method.getName(), arguments);
                    try {
                        Object result = method.invoke(target, arguments);
                        after.accept(result);
                        return result;
                    } catch (InvocationTargetException failure) {
                        throw failure.getCause();
                    }
                }));
    }

    private static int device(Object[] arguments) {
        return (int) arguments[0];
    }

    private static long number(Object[] arguments, int index) {
        return (long) arguments[index];
    }

    private Consumer<Object> device(String name, Object[] arguments) {
        return name.equals("synchronize") ? then(hazards.waitForDevice(device(arguments))) : NOTHING;
    }

    private static Consumer<Object> then(Runnable after) {
        return _ -> after.run();
    }

    private static Consumer<Object> ifTrue(Runnable after) {
        return answer -> {
            if (answer.equals(true)) {
                after.run();
            }
        };
    }

    private Consumer<Object> memory(String name, Object[] arguments) {
        return switch (name) {
            case "allocate" -> address -> anew(address, number(arguments, 1));
            case "allocateHost" -> memory -> pinned(memory, number(arguments, 1));
            case "registerHost" -> _ -> pinned(arguments[1], ((MemorySegment) arguments[1]).byteSize());
            case "freeHost", "unregisterHost" -> {
                hazards.uses(uses -> uses.unpinned(((MemorySegment) arguments[1]).address()));
                yield NOTHING;
            }
            default -> NOTHING;
        };
    }

    private void anew(Object address, long byteSize) {
        hazards.uses(uses -> uses.anew((long) address, byteSize));
    }

    private void pinned(Object memory, long byteSize) {
        hazards.uses(uses -> uses.pinned(((MemorySegment) memory).address(), byteSize));
    }

    private Consumer<Object> managed(String name, Object[] arguments) {
        return name.equals("discard")
                ? work(name, device(arguments), arguments, 3, writes(arguments, 1, number(arguments, 2)))
                : NOTHING;
    }

    private Consumer<Object> pool(String name, Object[] arguments) {
        return switch (name) {
            case "allocate" -> address -> anew(address, number(arguments, 1));
            case "allocateFrom" -> address -> anew(address, number(arguments, 2));
            default -> NOTHING;
        };
    }

    private Consumer<Object> page(String name, Object[] arguments) {
        return switch (name) {
            case "map" ->
                _ -> hazards.uses(
                        uses -> uses.mapped(number(arguments, 1), number(arguments, 2), number(arguments, 3)));
            case "unmap" -> _ -> hazards.uses(uses -> uses.unmapped(number(arguments, 1), number(arguments, 2)));
            case "release" -> {
                hazards.uses(uses -> uses.released(number(arguments, 1)));
                yield NOTHING;
            }
            default -> NOTHING;
        };
    }

    private Consumer<Object> copy(String name, Object[] arguments) {
        int device = device(arguments);
        return switch (name) {
            case "toDevice" ->
                work(name, device, arguments, 4, host(arguments, 2, false), writes(arguments, 1, number(arguments, 3)));
            case "arrayToDevice" ->
                work(name, device, arguments, 3, writes(arguments, 1, ((MemorySegment) arguments[2]).byteSize()));
            case "toHost" ->
                work(name, device, arguments, 4, reads(arguments, 2, number(arguments, 3)), host(arguments, 1, true));
            case "onDevice" -> {
                long byteSize = number(arguments, 3);
                yield work(name, device, arguments, 4, reads(arguments, 2, byteSize), writes(arguments, 1, byteSize));
            }
            case "betweenDevices" -> {
                long byteSize = number(arguments, 4);
                int from = (int) arguments[2];
                yield work(name, from, arguments, 5, reads(arguments, 3, byteSize), writes(arguments, 1, byteSize));
            }
            case "rows" -> work(name, device, arguments, 7, rows(arguments, 3, false), rows(arguments, 1, true));
            case "batch" -> work(name, device, arguments, 2, ofPieces((List<?>) arguments[1]));
            case "fillBytes" -> work(name, device, arguments, 4, writes(arguments, 1, number(arguments, 3)));
            case "fillShorts" -> work(name, device, arguments, 4, writes(arguments, 1, 2 * number(arguments, 3)));
            case "fillWords" -> work(name, device, arguments, 4, writes(arguments, 1, 4 * number(arguments, 3)));
            default -> NOTHING;
        };
    }

    private Consumer<Object> work(String name, int device, Object[] arguments, int stream, Range... ranges) {
        hazards.work(name, device, number(arguments, stream), ranges);
        return NOTHING;
    }

    private static Range reads(Object[] arguments, int address, long byteSize) {
        return new Range(number(arguments, address), byteSize, false);
    }

    private static Range writes(Object[] arguments, int address, long byteSize) {
        return new Range(number(arguments, address), byteSize, true);
    }

    private static Range host(Object[] arguments, int memory, boolean isWritten) {
        return new Range(((MemorySegment) arguments[memory]).address(), number(arguments, 3), isWritten);
    }

    /// @param address the argument that is followed by the pitch
    private static Range rows(Object[] arguments, int address, boolean isWritten) {
        long pitch = number(arguments, address + 1);
        return Range.rows(number(arguments, address), pitch, number(arguments, 5), number(arguments, 6), isWritten);
    }

    private static Range[] ofPieces(List<?> pieces) {
        List<Range> ranges = new ArrayList<>();
        for (Object each : pieces) {
            Copies.Piece piece = (Copies.Piece) each;
            ranges.add(new Range(piece.source(), piece.byteSize(), false));
            ranges.add(new Range(piece.target(), piece.byteSize(), true));
        }
        return ranges.toArray(Range[]::new);
    }

    private Consumer<Object> stream(String name, Object[] arguments) {
        switch (name) {
            case "synchronize" -> {
                return then(hazards.waitForStream(device(arguments), number(arguments, 1)));
            }
            case "isIdle" -> {
                return ifTrue(hazards.waitForStream(device(arguments), number(arguments, 1)));
            }
            case "await" -> hazards.awaited(device(arguments), number(arguments, 1), number(arguments, 2));
            case "launchHostFunction" -> hazards.work(name, device(arguments), number(arguments, 1));
            // before the call: afterwards its handle may name another stream
            case "destroy" -> hazards.streamDestroyed(device(arguments), number(arguments, 1));
            default -> {}
        }
        return NOTHING;
    }

    private Consumer<Object> event(String name, Object[] arguments) {
        switch (name) {
            case "record" -> hazards.recorded(device(arguments), number(arguments, 1), number(arguments, 2));
            case "recordAll" -> hazards.recordAll(device(arguments), number(arguments, 1));
            case "hasPassed" -> {
                return ifTrue(hazards.waitForEvent(number(arguments, 1)));
            }
            case "synchronize" -> {
                return then(hazards.waitForEvent(number(arguments, 1)));
            }
            case "destroy" -> hazards.eventDestroyed(number(arguments, 1));
            default -> {}
        }
        return NOTHING;
    }

    private Consumer<Object> graph(String name, Object[] arguments) {
        switch (name) {
            case "beginCapture" -> {
                return _ -> hazards.begins(device(arguments), number(arguments, 1));
            }
            case "endCapture" -> {
                Capture capture = hazards.ends(device(arguments), number(arguments, 1));
                return graph -> {
                    if (capture != null) {
                        graphs.put((long) graph, capture);
                    }
                };
            }
            case "instantiate" -> {
                return executable -> becomes(number(arguments, 1), (long) executable);
            }
            case "update" -> {
                return _ -> becomes(number(arguments, 2), number(arguments, 1));
            }
            case "launch" -> {
                Capture graph = graphs.get(number(arguments, 1));
                if (graph != null) {
                    hazards.launched(device(arguments), number(arguments, 2), graph);
                }
            }
            case "destroy", "destroyExecutable" -> graphs.remove(number(arguments, 1));
            default -> {}
        }
        return NOTHING;
    }

    private void becomes(long graph, long executable) {
        Capture capture = graphs.get(graph);
        if (capture != null) {
            graphs.put(executable, capture);
        }
    }

    private Consumer<Object> launch(String name, Object[] arguments) {
        if (name.equals("launch")) {
            List<Range> ranges = new ArrayList<>();
            for (Object each : (Object[]) arguments[4]) {
                if (each instanceof Modules.Region region && region.byteSize() > 0) {
                    ranges.add(new Range(region.address(), region.byteSize(), region.isWritten()));
                } else if (each instanceof Long address && address != 0) {
                    ranges.add(new Range(address, 1, true));
                }
            }
            hazards.work(name, device(arguments), number(arguments, 3), ranges.toArray(Range[]::new));
        }
        return NOTHING;
    }

    @Override
    public boolean simulated() {
        return driver.simulated();
    }

    @Override
    public String description() {
        return driver.description() + ", with stream order checked";
    }

    @Override
    public int version() {
        return driver.version();
    }

    @Override
    public DriverCapabilities capabilities() {
        return driver.capabilities();
    }

    @Override
    public Facets facets() {
        return facets;
    }

    @Override
    public CudaDriver original() {
        return driver.original();
    }

    @Override
    public CallCounts calls() {
        return driver.calls();
    }

    @Override
    public long nanoTime() {
        return driver.nanoTime();
    }

    @Override
    public void close() {
        driver.close();
    }

    private static void nothing(Object result) {}
}
