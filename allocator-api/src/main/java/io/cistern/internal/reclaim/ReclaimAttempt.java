package io.cistern.internal.reclaim;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.events.Events;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.threads.RestingThreads;
import io.cistern.internal.threads.Turn;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.OutOfMemoryArbiter;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Takes one request through the steps of an [OutOfMemoryHandler].
///
/// **Threads.** Only the request's thread. [Shared] has the state that attempts on one device share.
final class ReclaimAttempt {
    /// How often an allocator is asked to release memory after waiting: memory that waits on the stream of
    /// the request, idle memory of other streams, and all other memory. Also how often it is asked to
    /// compact.
    private static final int MAX_ROUNDS = 3;

    /// How long a thread waits for the turns of others while no turn ends: longer than the enqueued work of
    /// a device usually takes. After that, it takes the memory available without a turn and without
    /// waiting.
    private static final long PATIENCE_NANOS = 10_000_000_000L;

    /// The first pause between two checks of other threads' frees: about the time of a free and an allocation
    /// of the driver.
    private static final long PAUSE_NANOS = 100_000;

    /// The longest pause: still too short for users to notice.
    private static final long LONGEST_PAUSE_NANOS = 10_000_000;

    /// Stands for the address if a driver call has succeeded.
    private static final long DONE = 1;

    /// The state that the attempts on one device share.
    ///
    /// @param taking the turn to take idle memory from others
    /// @param waiting the turn to wait for the work of others
    /// @param given how often a step gave something
    record Shared(Turn taking, Turn waiting, AtomicLong given) {
        Shared() {
            this(new Turn(), new Turn(), new AtomicLong());
        }
    }

    /// The result of a step.
    ///
    /// @param bytes the bytes that became free, as far as the step knows
    /// @param note a remark for the report; empty if there is none
    /// @param mayGiveMore whether the same step may give more when it is taken again
    private record Given(long bytes, String note, boolean mayGiveMore) {
        static final Given NOTHING = new Given(0, "", false);
        static final Given BROKEN = new Given(0, "it failed", false);

        static Given of(long bytes) {
            return new Given(bytes, "", false);
        }
    }

    /// The outcome of a step for the request.
    ///
    /// @param address the address of memory for the request, or 0 if there still is none
    /// @param given what the step gave
    private record Outcome(long address, Given given) {
        static final Outcome NOTHING = new Outcome(0, Given.NOTHING);
    }

    /// The steps, in order, until memory is found. Each tries one thing, and asks the allocator again if
    /// that helped. It returns the address of memory for the request, or 0 if there is still none.
    private final List<LongSupplier> order = List.of(
            this::collectGraphs,
            this::askListeners,
            this::borrow,
            this::takeIdle,
            this::awaitGraphs,
            this::compact,
            this::spill,
            this::waitForFrees,
            this::askOnceMore);

    /// The steps that a thread repeats while it waits for frees.
    private final List<LongSupplier> repeated = List.of(this::borrow, this::takeIdle);

    /// The attempt of the same thread during which this one began.
    final @Nullable ReclaimAttempt outer;

    private final OutOfMemoryHandler handler;
    private final Registry registry;
    private final CudaDriver driver;
    private final Set<ReclaimStep> steps;
    private final OutOfMemoryHandler.Request request;
    private final Shared shared;
    private final Map<ReclaimStep, TriedStep> tried = new LinkedHashMap<>();
    private Route route;
    private DeviceOutOfMemoryException last;

    /// The value of [Shared#given] when the route was last asked.
    private long asked;

    /// Exceptions of allocators that were asked to give back.
    private final List<RuntimeException> thrown = new ArrayList<>();

    /// Whether the thread waits for frees, and so repeats steps.
    private boolean waits;

    private boolean asksListeners;

    /// 0 once another thread's turn did not end in time: that thread may be waiting for this one.
    private long patienceNanos = PATIENCE_NANOS;

    ReclaimAttempt(
            OutOfMemoryHandler handler,
            @Nullable ReclaimAttempt outer,
            OutOfMemoryHandler.Request request,
            DeviceOutOfMemoryException first) {
        this.handler = handler;
        this.outer = outer;
        this.request = request;
        this.registry = handler.registry;
        this.driver = registry.driver();
        this.steps = handler.steps;
        this.route = request.refusing().latest();
        this.shared = handler.shared.get(route.device());
        this.asked = shared.given.get();
        first.steps().forEach(each -> tried.merge(each.step(), each, TriedStep::plus));
        this.last = first;
    }

    Route route() {
        return route;
    }

    /// Serves the request.
    ///
    /// @throws DeviceOutOfMemoryException if nothing helps
    long run() {
        long address = search();
        address = address != 0 ? address : arbitrate();
        if (address == 0) {
            throw refused();
        }
        return address;
    }

    /// Returns whether the request is larger than the device, or than a limit of the route or its allocator, so that
    /// freed memory can't help.
    /// A pool that lends may have a higher limit.
    private boolean isHopeless() {
        return last.canNeverFit() && route == request.refusing();
    }

    /// Takes all steps. It starts again after each swap.
    ///
    /// @return 0 if nothing helps
    private long search() {
        if (isHopeless()) {
            return borrow();
        }
        Route from;
        do {
            route = route.latest();
            long address = route.isOpen() ? 0 : again();
            from = route;
            address = address != 0 ? address : serve(order);
            if (address != 0) {
                return address;
            }
        } while (!from.isOpen());
        return 0;
    }

    /// Lets the allocator decide, if it can. An attempt within a step of another attempt can't wait for
    /// memory.
    private long arbitrate() {
        OutOfMemoryArbiter arbiter = outer != null || last.isByLimit()
                ? null
                : route.extension(OutOfMemoryArbiter.class).orElse(null);
        if (arbiter == null) {
            return 0;
        }
        try {
            return arbiter.arbitrate(last, this::tryAgain);
        } catch (DeviceOutOfMemoryException refusal) {
            last = refusal;
            return 0;
        }
    }

    /// @throws DeviceOutOfMemoryException if no step helps
    private long tryAgain() {
        tried.clear();
        thrown.clear();
        long address = again();
        address = address != 0 ? address : search();
        if (address == 0) {
            throw last;
        }
        return address;
    }

    private static long serve(List<LongSupplier> order) {
        for (LongSupplier step : order) {
            long address = step.getAsLong();
            if (address != 0) {
                return address;
            }
        }
        return 0;
    }

    private DeviceOutOfMemoryException refused() {
        if (!isByOwnLimit()) {
            route.extension(MemoryReclaim.class).ifPresent(this::tellFailed);
        }
        thrown.stream().filter(each -> !each.equals(last)).forEach(last::addSuppressed);
        OutOfMemoryReport report = handler.reports.report(route, request.stream(), last, List.copyOf(tried.values()));
        if (registry.observers().any()) {
            var refused = last.canNeverFit()
                    ? Events.TOO_LARGE
                    : last.isByLimit() ? Events.LIMIT_REACHED : Events.OUT_OF_MEMORY;
            registry.observers().tell(refused, report, report.device(), 0, 0, 0, 0);
        }
        return last.with(report);
    }

    /// Returns whether the limit that refused is one that the route's blocks are charged to. The limit of
    /// an upstream is another case: the idle memory of the pools on that upstream is charged to it.
    private boolean isByOwnLimit() {
        return last.isByLimit() && last.getCause() == null;
    }

    /// Takes idle memory of this allocator, then of others. If a limit of the route refused, that does not
    /// help.
    private long takeIdle() {
        if (isByOwnLimit()) {
            return 0;
        }
        long address = takeOwnIdle();
        return address != 0 ? address : takeFromOthers();
    }

    private long takeOwnIdle() {
        long address =
                alone(ReclaimStep.TRIM, () -> giveBackOwn(ReclaimStep.TRIM)).address();
        return address != 0
                ? address
                : inRounds(() -> after(ReclaimStep.SYNCHRONIZE, () -> giveBackOwn(ReclaimStep.SYNCHRONIZE)));
    }

    /// Takes a step, and takes it again while there is no memory for the request and the step may give more.
    private static long inRounds(Supplier<Outcome> step) {
        Outcome outcome = step.get();
        for (int round = 1; outcome.address() == 0 && outcome.given().mayGiveMore() && round < MAX_ROUNDS; round++) {
            outcome = step.get();
        }
        return outcome.address();
    }

    /// Takes memory from others. A third thread, whose turn it was, may have taken what they released after
    /// their work, so their idle memory is tried once more.
    private long takeFromOthers() {
        long address = trimOthers();
        if (address != 0 || !steps.contains(ReclaimStep.SYNCHRONIZE)) {
            return address;
        }
        long before = shared.given.get();
        address = waitForOthers();
        boolean gave = shared.given.get() != before;
        return address == 0 && gave ? trimOthers() : address;
    }

    private long trimOthers() {
        return alone(ReclaimStep.OTHER_ALLOCATORS, () -> Given.of(trim(false, false)))
                .address();
    }

    /// Takes the memory that others release after their work. If another thread has waited too long for
    /// that, this thread does not wait, since it may be the one blocking the work. It takes the memory that
    /// has become idle.
    private long waitForOthers() {
        return inTurn(shared.waiting, ReclaimStep.OTHER_ALLOCATORS, mine -> Given.of(trim(mine, false)))
                .address();
    }

    /// Compacts the refusing allocator, then all others. Repeats this if it freed memory, but not enough.
    /// If a limit refused, moving live memory does not help.
    private long compact() {
        return last.isByLimit()
                ? 0
                : inRounds(() -> inTurn(
                        shared.waiting, // it waits for work
                        ReclaimStep.COMPACTION,
                        mine -> mine ? compactAll() : Given.NOTHING));
    }

    private Given compactAll() {
        return unlessBroken(
                () -> handler.pause().during(route.device(), this::compactWhileNothingRuns, this::unmoved),
                Given.BROKEN);
    }

    /// The note says why the refusing allocator moved nothing, or what moved in another one.
    private Given compactWhileNothingRuns() {
        String note = "";
        for (boolean own : new boolean[] {true, false}) {
            for (OpenAllocator allocator : registry.all()) {
                if (allocator.leads(route) != own) {
                    continue;
                }
                CompactionResult done = compacting(() -> allocator.compact(route.device(), request.byteSize()));
                if (done.movedBytes() > 0) {
                    note = done.movedBytes() + " bytes moved" + (own ? "" : " in " + allocator);
                } else if (own) {
                    note = done.obstacle();
                }
                if (done.freedBytes() > 0) {
                    return new Given(done.freedBytes(), note, true);
                }
            }
        }
        return new Given(0, note, false);
    }

    /// Reports what compaction would free in the refusing allocator, and in the other one where it would
    /// free the most.
    private Given unmoved(String why) {
        String own = "";
        String obstacle = "";
        String other = "";
        long most = 0;
        for (OpenAllocator allocator : registry.all()) {
            CompactionResult plan = compacting(() -> allocator.planCompaction(route.device()));
            String would = ByteSizes.exact(plan.freedBytes()) + " would be freed";
            if (allocator.leads(route)) {
                own = plan.freedBytes() > 0 ? would : "";
                obstacle = plan.obstacle();
            } else if (plan.freedBytes() > most) {
                most = plan.freedBytes();
                other = would + " in " + allocator;
            }
        }
        String freed = Stream.of(own, other).filter(each -> !each.isEmpty()).collect(Collectors.joining(", "));
        return new Given(0, freed.isEmpty() ? obstacle : freed + "; " + why, false);
    }

    private CompactionResult compacting(Supplier<Optional<CompactionResult>> compaction) {
        return unlessBroken(compaction, Optional.of(CompactionResult.nothing(Given.BROKEN.note())))
                .orElse(CompactionResult.nothing(""));
    }

    /// Makes stores spill until the request is served: spilled memory need not be contiguous. Each round
    /// asks for twice as much, so rounds are few and at most about half is spilled needlessly. A store that
    /// frees less than requested has no more. Spilled memory was freed after copies that may not be done,
    /// perhaps to another allocator, so idle memory is tried again.
    private long spill() {
        for (long wanted = request.byteSize(); wanted > 0; wanted *= 2) {
            long round = wanted;
            Outcome spilled = after(ReclaimStep.SPILL, () -> Given.of(ask(handler.stores, round)));
            long given = spilled.given().bytes();
            long address = spilled.address() == 0 && given > 0 ? takeIdle() : spilled.address();
            if (address != 0 || given < wanted) {
                return address;
            }
        }
        return 0;
    }

    /// Takes idle memory from others, in its turn: see [#after].
    private Outcome alone(ReclaimStep step, Supplier<Given> taking) {
        return inTurn(shared.taking, step, _ -> taking.get());
    }

    /// @param taking receives whether this thread got its turn in time
    private Outcome inTurn(Turn turn, ReclaimStep step, Function<Boolean, Given> taking) {
        boolean mine = turn.begin(patienceNanos);
        patienceNanos = mine ? patienceNanos : 0;
        try {
            return after(step, () -> taking.apply(mine));
        } finally {
            if (mine) {
                turn.end();
            }
        }
    }

    /// Takes a step, and asks the route again if the step gave something. Bytes that are free on the device
    /// afterwards count, too: more may be released than the step reports. If another thread's step has
    /// given something before, this asks the route first.
    private Outcome after(ReclaimStep step, Supplier<Given> taking) {
        if (!steps.contains(step)) {
            return Outcome.NOTHING;
        }
        long address = askIfGiven();
        if (address != 0) {
            return new Outcome(address, Given.NOTHING);
        }
        long begun = driver.nanoTime();
        long free = freeBytes();
        Given given = taking.get();
        long bytes = Math.max(given.bytes(), freeBytes() - free);
        note(step, bytes, begun, given.note());
        if (bytes > 0) {
            shared.given.incrementAndGet();
        }
        return new Outcome(askIfGiven(), given);
    }

    /// Records a step. All its rounds are recorded as one.
    private void note(ReclaimStep step, long given, long begun, String note) {
        if (waits || (given == 0 && note.isEmpty() && !hasSomethingToTry(step))) {
            return;
        }
        TriedStep now = new TriedStep(step, given, driver.nanoTime() - begun, note);
        if (registry.observers().any()) {
            registry.observers().tell(Events.RECLAIMED, now, route.device(), request.byteSize(), 0, 0, 0);
        }
        tried.merge(step, now, TriedStep::plus);
    }

    /// Returns whether a step that gave nothing had something to try.
    private boolean hasSomethingToTry(ReclaimStep step) {
        return switch (step) {
            case GRAPHS -> false; // each graph that is gone gives something
            case CALLBACKS -> !handler.listeners.isEmpty();
            case LENDING -> registry.hasLender(route);
            case OTHER_ALLOCATORS -> registry.all().size() > 1;
            case SPILL -> !handler.stores.isEmpty();
            default -> true;
        };
    }

    private long askIfGiven() {
        return shared.given.get() == asked ? 0 : again();
    }

    /// Asks again after all steps: some free memory appears in no figure, such as that of a driver pool
    /// that two allocators share, or of blocks whose streams have since passed their frees.
    private long askOnceMore() {
        return steps.isEmpty() ? 0 : again();
    }

    /// Asks the route again; if it is closed, the next one. The loop ends, since each turn needs one more swap.
    ///
    /// @return 0 if it still has no memory
    private long again() {
        asked = shared.given.get();
        try {
            long address = allocate();
            while (address == Router.REFUSED) {
                route = request.next().apply(route);
                address = allocate();
            }
            return address;
        } catch (DeviceOutOfMemoryException stillNot) {
            last = stillNot;
            return 0;
        }
    }

    private long allocate() {
        Runnable driverCall = request.driverCall();
        if (driverCall == null) {
            return registry.router().allocate(route, request.byteSize(), request.stream());
        }
        if (!route.isOpen()) {
            return Router.REFUSED;
        }
        driverCall.run();
        return DONE;
    }

    private long collectGraphs() {
        return after(ReclaimStep.GRAPHS, () -> Given.of(handler.captures.collect() ? 1 : 0))
                .address();
    }

    /// Collects once more, after the launches of graphs that the program has closed.
    private long awaitGraphs() {
        int device = route.device();
        return handler.captures.awaitsGraphs(device)
                ? inTurn(
                                shared.waiting,
                                ReclaimStep.GRAPHS,
                                mine -> Given.of(mine && handler.captures.collectClosed(device) ? 1 : 0))
                        .address()
                : 0;
    }

    private long askListeners() {
        return after(ReclaimStep.CALLBACKS, () -> Given.of(ask(handler.listeners, request.byteSize())))
                .address();
    }

    private long freeBytes() {
        return driver.memory().freeBytes(route.device());
    }

    private long ask(List<OutOfMemoryHandler.MemoryReleaser> listeners, long byteSize) {
        if (isInListener()) {
            return 0;
        }
        asksListeners = true;
        try {
            return listeners.stream()
                    .mapToLong(listener -> listener.free(route.device(), byteSize))
                    .sum();
        } finally {
            asksListeners = false;
        }
    }

    private boolean isInListener() {
        for (ReclaimAttempt each = outer; each != null; each = each.outer) {
            if (each.asksListeners) {
                return true;
            }
        }
        return false;
    }

    private long borrow() {
        if (!steps.contains(ReclaimStep.LENDING) || request.driverCall() != null) {
            return 0;
        }
        long begun = driver.nanoTime();
        long address = registry.lend(route, request.limit(), request.byteSize(), request.stream());
        if (address != 0 || !isHopeless()) {
            note(ReclaimStep.LENDING, address == 0 ? 0 : request.byteSize(), begun, "");
        }
        return address;
    }

    private Given giveBackOwn(ReclaimStep step) {
        MemoryReclaim own = route.extension(MemoryReclaim.class).orElse(null);
        OptionalLong given = own == null
                ? OptionalLong.empty()
                : unlessBroken(() -> own.reclaim(step, last, request.stream()), OptionalLong.of(0));
        return given.isPresent()
                ? new Given(given.getAsLong(), "", given.getAsLong() > 0)
                : Given.of(trim(step == ReclaimStep.SYNCHRONIZE, true)); // which gives all at once
    }

    /// Asks an allocator to release memory and returns its answer; `nothing` if it throws.
    ///
    /// @throws CudaException if the context is dead
    private <T> T unlessBroken(Supplier<T> givingBack, T nothing) {
        try {
            return givingBack.get();
        } catch (RuntimeException broken) {
            if (broken instanceof CudaException failure && failure.result().endsContext()) {
                throw broken;
            }
            if (!waits) {
                thrown.add(broken);
            }
            return nothing;
        }
    }

    private void tellFailed(MemoryReclaim own) {
        try {
            own.failed(last);
        } catch (RuntimeException broken) {
            thrown.add(broken);
        }
    }

    /// Trims the route's allocator, or all others.
    private long trim(boolean wait, boolean own) {
        boolean waitsForWork = wait && !driver.graphs().isSheltered(route.device());
        TrimMode mode = waitsForWork ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING;
        long returned = 0;
        for (OpenAllocator allocator : registry.all()) {
            if (allocator.leads(route) == own) {
                returned += unlessBroken(
                        () -> allocator.trim(route.device(), 0, mode).returnedBytes(), 0L);
            }
        }
        return returned;
    }

    private long waitForFrees() {
        if (!steps.contains(ReclaimStep.FREES) || handler.longestWait.isZero()) {
            return 0;
        }
        long begun = driver.nanoTime();
        waits = true;
        long address = lookForFrees(System.nanoTime() + TimeUnit.NANOSECONDS.convert(handler.longestWait));
        waits = false;
        note(ReclaimStep.FREES, address == 0 ? 0 : request.byteSize(), begun, "");
        return address;
    }

    private long lookForFrees(long deadline) {
        long address = 0;
        long pause = PAUSE_NANOS;
        long seen = -1; // other threads may have freed since the last attempt
        while (address == 0
                && System.nanoTime() - deadline < 0
                && !Thread.currentThread().isInterrupted()) {
            rest(pause);
            long now = frees();
            if (now == seen) {
                address = askIfGiven();
            } else {
                seen = now;
                address = again();
                address = address != 0 ? address : serve(repeated);
                pause = Math.min(2 * pause, LONGEST_PAUSE_NANOS);
            }
        }
        return address;
    }

    private static void rest(long nanos) {
        RestingThreads.during(() -> LockSupport.parkNanos(nanos));
    }

    private long frees() {
        return registry.all().stream()
                .mapToLong(allocator -> allocator.countedFrees(route.device()))
                .sum();
    }
}
