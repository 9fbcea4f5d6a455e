package io.cistern.internal.reclaim;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.capture.Captures;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.Route;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Looks for memory when an allocator has none for a request, after the allocator's own search.
/// [ReclaimAttempt] lists the steps. After each step that gave something, it asks the allocator again.
///
/// **No livelock.** For each device, one thread at a time takes memory from others ([Turn]). A thread
/// asks the allocator again whenever any thread's step has given something on the device since it last asked.
/// Each step is taken once, with two exceptions. Stores are asked for twice as much each time, until they have
/// less. A thread that waits for frees repeats steps after there were some. It backs off exponentially, so
/// running threads get time to free.
///
/// **No deadlock.** Nothing is locked while listeners, allocators or the driver are called, since each of them
/// may wait for another thread that needs memory. A turn to take memory never covers a wait for work. For each
/// device, one thread waits for the work that used other allocators' idle memory; the others wait for that
/// thread, with a bound.
///
/// For a request that a limit refused, only steps that reduce the bytes charged to that limit are taken. If
/// the allocator of a request closes, the request starts again with the allocator that now serves it.
///
/// **Threads.** Any.
public final class OutOfMemoryHandler implements AutoCloseable {
    final Registry registry;
    final Captures captures;
    final OutOfMemoryReporter reports;
    final Set<ReclaimStep> steps;
    private final ProgramPause pause = new ProgramPause();
    final Duration longestWait;
    final List<MemoryReleaser> listeners = new CopyOnWriteArrayList<>();
    final List<MemoryReleaser> stores = new CopyOnWriteArrayList<>();

    /// By device.
    final List<ReclaimAttempt.Shared> shared;

    /// The calling thread's innermost attempt.
    @SuppressWarnings("ThreadLocalUsage") // a listener of one device memory may allocate from another
    private final ThreadLocal<@Nullable ReclaimAttempt> attempts = new ThreadLocal<>();

    /// Frees device memory that a program can spare or move elsewhere.
    @FunctionalInterface
    public interface MemoryReleaser {
        /// Returns the bytes that were freed for a request.
        long free(int device, long byteSize);
    }

    /// @param longestWait how long to wait for frees by other threads
    public OutOfMemoryHandler(Registry registry, Captures captures, Duration longestWait) {
        this.registry = registry;
        this.captures = captures;
        this.reports = new OutOfMemoryReporter(registry);
        this.steps = registry.reclaimSteps();
        this.longestWait = longestWait;
        this.shared = Stream.generate(ReclaimAttempt.Shared::new)
                .limit(registry.environment().deviceCount())
                .toList();
    }

    /// Adds a listener, which is asked in a step from now on.
    ///
    /// @return an action that removes the listener
    /// @throws IllegalArgumentException if the step asks no listeners
    public Runnable add(ReclaimStep step, MemoryReleaser listener) {
        List<MemoryReleaser> asked = switch (step) {
            case CALLBACKS -> listeners;
            case SPILL -> stores;
            default -> throw new IllegalArgumentException("step " + step + " takes no listeners");
        };
        asked.add(listener);
        return () -> asked.remove(listener);
    }

    /// Returns the object that decides whether live memory may move.
    public ProgramPause pause() {
        return pause;
    }

    /// Moves live memory of an allocator together, as far as it can, if the program pauses.
    public CompactionResult compact(OpenAllocator allocator, int device) {
        CompactionResult unable = CompactionResult.nothing(allocator + " can't move live memory");
        return pause.during(
                device,
                () -> allocator.compact(device, 0).orElse(unable),
                why -> allocator
                        .planWithUpstream(device)
                        .map(plan -> unmoved(plan, why))
                        .orElse(unable));
    }

    /// Returns the result if the program did not pause.
    ///
    /// @param plan what would have been done
    private static CompactionResult unmoved(CompactionResult plan, String why) {
        return CompactionResult.nothing(
                plan.freedBytes() > 0
                        ? ByteSizes.exact(plan.freedBytes()) + " would be freed; " + why
                        : plan.obstacle());
    }

    /// Returns whether the calling thread is looking for memory for a request to an allocator: in a listener,
    /// for example.
    public boolean isReclaimingFor(OpenAllocator allocator) {
        for (ReclaimAttempt attempt = attempts.get(); attempt != null; attempt = attempt.outer) {
            if (allocator.leads(attempt.route())) {
                return true;
            }
        }
        return false;
    }

    /// A request that a route could not serve.
    ///
    /// @param limit the limit of the scope that chose the route, or null
    /// @param next returns the route that serves the request instead of a closed one; throws if there is none
    /// @param driverCall a call that needs memory of the driver, such as the launch of a graph or a pool's initial
    ///     bytes, to be made again instead of an allocation; null for an allocation
    public record Request(
            Route refusing,
            @Nullable LimitHandle limit,
            long byteSize,
            long stream,
            UnaryOperator<Route> next,
            @Nullable Runnable driverCall) {
        /// A request for a block.
        public Request(
                Route refusing, @Nullable LimitHandle limit, long byteSize, long stream, UnaryOperator<Route> next) {
            this(refusing, limit, byteSize, stream, next, null);
        }
    }

    /// Retries a driver call that failed for lack of memory, after looking for memory.
    ///
    /// @param first the failure of the call
    /// @param byteSize the bytes that it needs, for the steps and the report
    /// @param what says what the memory is for
    /// @throws DeviceOutOfMemoryException if nothing helps
    /// @throws CudaException if the call failed for another reason
    public void callAgain(CudaException first, int device, long byteSize, long stream, String what, Runnable call) {
        DeviceOutOfMemoryException failure = outOfMemory(first, device, byteSize, what);
        Runnable again = () -> {
            try {
                call.run();
            } catch (CudaException refusal) {
                throw outOfMemory(refusal, device, byteSize, what);
            }
        };
        Route route = openRoute(device, failure);
        serve(new Request(route, null, byteSize, stream, _ -> openRoute(device, failure), again), failure);
    }

    private static DeviceOutOfMemoryException outOfMemory(
            CudaException refusal, int device, long byteSize, String what) {
        if (refusal.result() != CudaResult.OUT_OF_MEMORY) {
            throw refusal;
        }
        return new DeviceOutOfMemoryException(byteSize, device, what, refusal);
    }

    /// @param otherwise thrown if the device memory is closed, so that nothing can be reclaimed
    private Route openRoute(int device, DeviceOutOfMemoryException otherwise) {
        Route route = registry.currents().get(device).route(device);
        if (!route.isOpen()) {
            throw otherwise;
        }
        return route;
    }

    /// Serves a request.
    ///
    /// @throws DeviceOutOfMemoryException if nothing helps
    /// @throws IllegalStateException if the allocator is closed and no other one serves the request
    public long serve(Request request, DeviceOutOfMemoryException failure) {
        ReclaimAttempt outer = attempts.get();
        ReclaimAttempt attempt = new ReclaimAttempt(this, outer, request, failure);
        attempts.set(attempt);
        try {
            return attempt.run();
        } finally {
            if (outer != null) {
                attempts.set(outer);
            } else {
                attempts.remove();
            }
        }
    }

    @Override
    public void close() {
        pause.close();
    }
}
