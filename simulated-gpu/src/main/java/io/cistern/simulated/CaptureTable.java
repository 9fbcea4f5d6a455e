package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.stream.StreamQueue;
import java.util.EnumSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The captures of a machine that are under way, and the calls that they forbid. Guarded by the machine's lock.
///
/// A forbidden call fails and invalidates the captures that forbid it. The forbidden calls are those that an
/// H200 with driver 580 refuses; calls on addresses and physical handles are not among them.
final class CaptureTable {
    /// Calls that allocate or free memory outside stream order, instantiate graphs, wait on the host, or
    /// query progress.
    private static final Set<DriverCall> UNSAFE = EnumSet.of(
            DriverCall.MEM_ALLOC,
            DriverCall.MEM_FREE,
            DriverCall.MEM_HOST_ALLOC,
            DriverCall.MEM_FREE_HOST,
            DriverCall.MEM_HOST_REGISTER,
            DriverCall.MEM_HOST_UNREGISTER,
            DriverCall.MEM_POOL_CREATE,
            DriverCall.MEM_POOL_DESTROY,
            DriverCall.MEM_POOL_TRIM_TO,
            DriverCall.GRAPH_INSTANTIATE,
            DriverCall.EVENT_QUERY,
            DriverCall.EVENT_SYNCHRONIZE,
            DriverCall.STREAM_QUERY,
            DriverCall.STREAM_SYNCHRONIZE);

    /// Calls that concern all streams of the context, including captured ones.
    private static final Set<DriverCall> OVER_ALL_STREAMS =
            EnumSet.of(DriverCall.CONTEXT_SYNCHRONIZE, DriverCall.CONTEXT_RECORD_EVENT);

    private final Set<Capture> captures = new LinkedHashSet<>();
    private final Map<Thread, CaptureMode> modes = new WeakHashMap<>();
    private volatile boolean sheltered;
    private final Map<Integer, Integer> sheltersOfDevices = new ConcurrentHashMap<>();
    private long lastId;

    long nextId() {
        return ++lastId;
    }

    void add(Capture capture) {
        captures.add(capture);
    }

    void remove(Capture capture) {
        capture.end();
        captures.remove(capture);
    }

    @Nullable
    Capture of(StreamQueue stream) {
        for (Capture capture : captures) {
            if (capture.streams().contains(stream)) {
                return capture;
            }
        }
        return null;
    }

    CaptureMode exchangeMode(CaptureMode mode) {
        CaptureMode before = modes.put(Thread.currentThread(), mode);
        return before == null ? CaptureMode.GLOBAL : before;
    }

    void shelter(int device, int change) {
        sheltersOfDevices.merge(device, change, Integer::sum);
        sheltered = sheltersOfDevices.values().stream().anyMatch(count -> count != 0);
    }

    /// May be called without the lock.
    boolean isSheltered(int device) {
        return sheltered && sheltersOfDevices.getOrDefault(device, 0) != 0;
    }

    void check(DriverCall call, int device) {
        if (captures.isEmpty()) {
            return;
        }
        if (OVER_ALL_STREAMS.contains(call)) {
            refuse(captures.stream().filter(each -> each.origin.device() == device), !isSheltered(device));
        } else if (UNSAFE.contains(call)) {
            checkUnsafe();
        }
    }

    /// Fails if a capture forbids calls outside it, such as an allocation from a pool on a stream that is
    /// not captured.
    void checkUnsafe() {
        if (!sheltered) {
            refuse(captures.stream().filter(this::forbids), true);
        }
    }

    private boolean forbids(Capture capture) {
        if (capture.mode == CaptureMode.RELAXED) {
            return false;
        }
        boolean own = capture.owner.equals(Thread.currentThread());
        return switch (modes.getOrDefault(Thread.currentThread(), CaptureMode.GLOBAL)) {
            case GLOBAL -> own || capture.mode == CaptureMode.GLOBAL;
            case THREAD_LOCAL -> own;
            case RELAXED -> false;
        };
    }

    private static void refuse(Stream<Capture> forbidding, boolean made) {
        List<Capture> all = forbidding.toList();
        if (all.isEmpty()) {
            return;
        }
        if (made) {
            all.forEach(Capture::invalidate);
        }
        throw new DriverFailure(CudaResult.STREAM_CAPTURE_UNSUPPORTED);
    }

    /// Fails if the stream is the legacy default stream and would have to wait for a captured one. The attempt
    /// invalidates the captures.
    void refuseImplicit(StreamQueue stream, StreamQueue legacy) {
        if (stream == legacy) {
            List<Capture> waited = waitedFor(stream);
            waited.forEach(Capture::invalidate);
            requireNone(waited);
        }
    }

    /// Fails like [#refuseImplicit], but for a query, which invalidates nothing.
    void refuseToTell(StreamQueue stream, StreamQueue legacy) {
        if (stream == legacy) {
            requireNone(waitedFor(stream));
        }
    }

    private List<Capture> waitedFor(StreamQueue legacy) {
        return captures.stream()
                .filter(capture -> capture.streams().stream()
                        .anyMatch(each -> each.blocking() && each.device() == legacy.device()))
                .toList();
    }

    private static void requireNone(List<Capture> waited) {
        failIf(!waited.isEmpty(), CudaResult.STREAM_CAPTURE_IMPLICIT);
    }

    /// Fails for a captured stream. The attempt invalidates the capture.
    void refuseCaptured(StreamQueue stream) {
        Capture capture = of(stream);
        if (capture != null) {
            capture.invalidate();
            throw new DriverFailure(CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        }
    }
}
