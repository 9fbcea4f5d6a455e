package io.cistern.cli.refusals;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.cli.refusals.FalseRefusal.Cause;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.GraphMemory;
import io.cistern.pressure.RetryOom;
import io.cistern.pressure.TaskOom;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.util.List;
import java.util.Optional;

/// Says whether something could have served a refused request. It looks from outside: it asks again, takes by hand,
/// one after the other, the steps that the refusal should have taken, and compares what is left with the driver, the
/// limits and the live blocks as the program knows them.
public final class RefusalOracle {
    static final long PAGE = 2 << 20;

    /// A nearly full device keeps some of what it counts as free.
    private static final long SLACK = 4 << 20;

    private final SimulatedGpu gpu;
    private final DeviceMemory memory;
    private final Holdings program;

    /// What the program knows of itself.
    public interface Holdings {
        /// Returns the bytes charged to a limit.
        long charged(MemoryLimit limit);

        /// Returns whether a stream is captured; then nothing may wait.
        boolean captures();

        /// Returns whether graphs were captured, which may keep memory.
        boolean hasCaptured();

        /// Returns whether the program says that it rests, so that live memory may move.
        boolean pauses();

        /// Moves all buffers off the device that may leave it; returns whether there are any.
        boolean spill();

        /// Returns the number of pages of [#PAGE] bytes that hold something alive; -1 if that is not known.
        long livePages();

        /// Waits for all streams.
        void synchronize();
    }

    /// What moves or gives memory back, and the cause that it shows.
    private record Remedy(Cause cause, Runnable take) {}

    public RefusalOracle(SimulatedGpu gpu, DeviceMemory memory, Holdings program) {
        this.gpu = gpu;
        this.memory = memory;
        this.program = program;
    }

    public static boolean isRefusal(RuntimeException thrown) {
        return thrown instanceof DeviceOutOfMemoryException || thrown instanceof TaskOom;
    }

    /// Judges a refusal; afterwards nothing of the request is left.
    ///
    /// @param thoroughly whether to take the steps that change what the allocators hold
    public Optional<FalseRefusal> judge(Request request, RuntimeException refusal, boolean thoroughly) {
        if (refusal instanceof RetryOom rollsBack) {
            rollsBack.blockUntilReady();
        }
        Optional<Cause> cause =
                refusal instanceof DeviceOutOfMemoryException told ? untrue(request, told) : Optional.empty();
        String facts = facts(request);
        if (cause.isEmpty()) {
            cause = couldBeServed(request, refusal, thoroughly);
        }
        return cause.map(found -> new FalseRefusal(
                found,
                request.what() + " refused: " + refusal + (refusal.getCause() == null ? "" : "; " + refusal.getCause())
                        + "\n    then " + facts + "\n    after the oracle " + facts(request)));
    }

    private String facts(Request request) {
        Allocator allocator = request.allocator();
        return "free at the driver " + gpu.memory().freeBytes(0) + ", live pages " + program.livePages()
                + (allocator == null ? "" : ", reserved " + allocator.reservedBytes(0));
    }

    private Optional<Cause> untrue(Request request, DeviceOutOfMemoryException told) {
        if (told.isByLimit() && !mayLimit(request)) {
            return Optional.of(Cause.LIMIT_HAS_ROOM);
        }
        if (!told.isByLimit() && mustLimit(request)) {
            return Optional.of(Cause.LIMIT_IGNORED);
        }
        boolean wrong = told.report().isPresent()
                && told.report().orElseThrow().freeBytes().orElse(-1)
                        != gpu.memory().freeBytes(0);
        return wrong ? Optional.of(Cause.WRONG_FREE_BYTES) : Optional.empty();
    }

    private boolean mustLimit(Request request) {
        return request.limits().stream()
                .anyMatch(limit -> program.charged(limit) + request.byteSize() > limit.byteSize());
    }

    /// What graphs keep is charged, too, until they are gone; how much that is, other tests check.
    private boolean mayLimit(Request request) {
        return mustLimit(request)
                || (program.hasCaptured()
                        && request.limits().stream()
                                .anyMatch(limit -> limit.usedBytes() + request.byteSize() > limit.byteSize()));
    }

    private Optional<Cause> couldBeServed(Request request, RuntimeException refusal, boolean thoroughly) {
        if (served(request)) {
            return Optional.of(Cause.SERVED_AGAIN);
        }
        if (!thoroughly || program.captures()) {
            return Optional.empty();
        }
        if (!mayLimit(request) && hasRun(request)) {
            return Optional.of(Cause.RUN_OF_ITS_STREAM);
        }
        for (Remedy remedy : remedies()) {
            remedy.take.run();
            if (served(request)) {
                return Optional.of(remedy.cause);
            }
        }
        return mayLimit(request) ? Optional.empty() : memoryLeft(request, refusal);
    }

    private List<Remedy> remedies() {
        return List.of(
                new Remedy(Cause.SERVED_AFTER_WAIT, program::synchronize),
                new Remedy(Cause.SERVED_AFTER_COLLECT, () -> GraphMemory.collect(memory)),
                new Remedy(Cause.SERVED_AFTER_TRIM, () -> memory.trim(0, 0, TrimMode.WITHOUT_WAITING)),
                new Remedy(Cause.SERVED_AFTER_WAITING_TRIM, () -> memory.trim(0, 0, TrimMode.SYNCHRONIZE)),
                new Remedy(Cause.SERVED_AFTER_COMPACTION, this::compact),
                new Remedy(Cause.SERVED_AFTER_SPILL, program::spill),
                new Remedy(Cause.SERVED_AFTER_SPILL, () -> {
                    program.synchronize();
                    memory.trim(0, 0, TrimMode.SYNCHRONIZE);
                }));
    }

    private void compact() {
        if (program.pauses()) {
            memory.allocators().forEach(each -> each.compact(0));
        }
    }

    private static boolean served(Request request) {
        try {
            request.ask().ask().run();
            return true;
        } catch (RuntimeException refused) {
            if (!isRefusal(refused)) {
                throw refused;
            }
            if (refused instanceof RetryOom rollsBack) {
                rollsBack.blockUntilReady();
            }
            return false;
        }
    }

    private static boolean hasRun(Request request) {
        Allocator allocator = request.allocator();
        long needed = request.cap().blockBytes(request.byteSize());
        if (allocator == null || needed == 0) {
            return false;
        }
        return allocator.segments(0).stream()
                .filter(segment -> segment.stream().orElse(-1) == request.stream())
                .anyMatch(segment -> longestRun(segment) >= needed);
    }

    private static long longestRun(SegmentMemory segment) {
        long longest = 0;
        long run = 0;
        for (SegmentMemory.Block block : segment.blocks()) {
            run = block.state() == SegmentMemory.State.IDLE ? run + block.byteSize() : 0;
            longest = Math.max(longest, run);
        }
        return longest;
    }

    /// After all steps, idle memory is at the driver.
    private Optional<Cause> memoryLeft(Request request, RuntimeException refusal) {
        Cap cap = request.cap();
        long needed = roundUp(request.byteSize(), cap.pageBytes());
        if (!cap.onDevice()) {
            return Optional.empty();
        }
        if (gpu.memory().freeBytes(0) >= needed) {
            return isCapped(request, needed) ? named(cap, refusal) : Optional.of(Cause.DRIVER_HAS_ENOUGH);
        }
        long pages = program.livePages();
        boolean leavesRoom =
                program.pauses() && pages >= 0 && gpu.memory().info(0).totalBytes() - pages * PAGE >= needed + SLACK;
        return leavesRoom ? Optional.of(Cause.LIVE_PAGES_LEAVE_ROOM) : Optional.empty();
    }

    private static boolean isCapped(Request request, long needed) {
        Allocator allocator = request.allocator();
        Cap cap = request.cap();
        return !cap.cap().isEmpty()
                && (allocator == null
                        || cap.cap().equals("limit of")
                        || allocator.reservedBytes(0).orElse(0) + needed > cap.capBytes());
    }

    private static Optional<Cause> named(Cap cap, RuntimeException refusal) {
        Throwable cause = refusal.getCause();
        String told = refusal.getMessage() + (cause == null ? "" : cause.getMessage());
        return told.contains(cap.cap()) ? Optional.empty() : Optional.of(Cause.UNNAMED_CAP);
    }

    static long roundUp(long byteSize, long unit) {
        return (byteSize + unit - 1) / unit * unit;
    }
}
