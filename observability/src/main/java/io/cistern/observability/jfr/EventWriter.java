package io.cistern.observability.jfr;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.TriedStep;
import io.cistern.observability.internal.ScopesOfThread;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/// Turns the events of a device memory into events of the recorder, while a recording runs.
///
/// **Threads.** Any; each event arrives on the thread that caused it.
final class EventWriter implements Consumer<MemoryEvent> {
    /// A power of two. Threads share a counter only if there are more threads than stripes.
    private static final int STRIPES = 64;

    /// Bytes since a thread's last sample, by thread. Not thread-local, so short-lived
    /// threads are sampled together.
    private final AtomicLongArray sinceSample = new AtomicLongArray(STRIPES);

    @SuppressWarnings("ThreadLocalUsage") // one for each recording
    private final ThreadLocal<ScopesOfThread<EventTypes.Scope>> scopes =
            ThreadLocal.withInitial(() -> new ScopesOfThread<>(EventTypes.Scope::commit));

    @Override
    public void accept(MemoryEvent told) {
        switch (told) {
            case MemoryEvent.Allocated block -> allocated(block);
            case MemoryEvent.SegmentAcquired got -> {
                EventTypes.SegmentAcquired event = new EventTypes.SegmentAcquired();
                event.set(got.allocator(), got.device(), got.address(), got.byteSize());
                event.commit();
            }
            case MemoryEvent.SegmentReleased gone -> {
                EventTypes.SegmentReleased event = new EventTypes.SegmentReleased();
                event.set(gone.allocator(), gone.device(), gone.address(), gone.byteSize());
                event.commit();
            }
            case MemoryEvent.PageMoved page -> moved(page);
            case MemoryEvent.Trimmed trim -> trimmed(trim);
            case MemoryEvent.CurrentChanged change -> changed(change);
            case MemoryEvent.ScopeEntered scope -> entered(scope);
            case MemoryEvent.ScopeLeft scope -> scopes.get().leave(scope.allocator());
            case MemoryEvent.Reclaimed reclaim -> reclaimed(reclaim);
            case MemoryEvent.OutOfMemory refusal -> refused(refusal.report());
            case MemoryEvent.Annotated annotation -> {
                EventTypes.Annotation event = new EventTypes.Annotation();
                event.text = annotation.text();
                event.commit();
            }
            default -> {} // no event of the recorder
        }
    }

    private void allocated(MemoryEvent.Allocated block) {
        EventTypes.SlowAllocation slow = new EventTypes.SlowAllocation();
        if (slow.isEnabled() && block.nanos() >= LeastSetting.SlowerThan.nanos()) {
            slow.set(block.allocator(), block.device(), block.address(), block.byteSize());
            slow.stream = block.stream();
            slow.took = block.nanos();
            slow.commit();
        }
        EventTypes.AllocationSample sample = new EventTypes.AllocationSample();
        if (sample.isEnabled()) {
            int stripe = (int) Thread.currentThread().threadId() & (STRIPES - 1);
            if (sinceSample.addAndGet(stripe, block.byteSize()) >= LeastSetting.SampleInterval.bytes()) {
                sample.set(block.allocator(), block.device(), block.address(), block.byteSize());
                sample.stream = block.stream();
                sample.weight = sinceSample.getAndSet(stripe, 0);
                sample.commit();
            }
        }
    }

    private static void moved(MemoryEvent.PageMoved page) {
        EventTypes.PageMoved event = new EventTypes.PageMoved();
        event.set(page.allocator(), page.device(), page.address(), page.byteSize());
        event.formerAddress = page.formerAddress();
        event.commit();
    }

    private static void trimmed(MemoryEvent.Trimmed trim) {
        EventTypes.Trim event = new EventTypes.Trim();
        event.allocator = trim.allocator();
        event.device = trim.device();
        event.keepBytes = trim.keepBytes();
        event.waited = trim.waited();
        event.returnedBytes = trim.returnedBytes();
        event.took = trim.nanos();
        event.commit();
    }

    private static void changed(MemoryEvent.CurrentChanged change) {
        EventTypes.CurrentChanged event = new EventTypes.CurrentChanged();
        event.allocator = change.allocator();
        event.device = change.device();
        event.former = change.former();
        event.commit();
    }

    private void entered(MemoryEvent.ScopeEntered scope) {
        EventTypes.Scope event = new EventTypes.Scope();
        if (event.isEnabled()) {
            event.allocator = scope.allocator();
            event.begin();
            scopes.get().enter(scope.allocator(), event);
        }
    }

    private static void reclaimed(MemoryEvent.Reclaimed reclaim) {
        EventTypes.ReclaimStep event = new EventTypes.ReclaimStep();
        event.device = reclaim.device();
        event.byteSize = reclaim.byteSize();
        event.step = reclaim.step().step().name();
        event.reclaimedBytes = reclaim.step().byteSize();
        event.took = reclaim.step().nanos();
        event.commit();
    }

    private static void refused(OutOfMemoryReport report) {
        EventTypes.OutOfMemory event = new EventTypes.OutOfMemory();
        if (!event.isEnabled()) {
            return;
        }
        event.device = report.device();
        event.stream = report.stream();
        event.byteSize = report.byteSize();
        event.freeBytes = report.freeBytes().orElse(Long.MIN_VALUE);
        event.totalBytes = report.totalBytes().orElse(Long.MIN_VALUE);
        if (!report.allocators().isEmpty()) {
            OutOfMemoryReport.AllocatorMemory asked = report.allocators().getFirst();
            event.allocator = asked.name();
            event.requestedBytes = asked.requestedBytes();
            event.reservedBytes = asked.reservedBytes().orElse(Long.MIN_VALUE);
            event.largestFreeBytes = asked.largestFreeBytes().orElse(Long.MIN_VALUE);
        }
        event.steps = report.steps().stream().map(TriedStep::toString).collect(Collectors.joining("; "));
        event.commit();
    }
}
