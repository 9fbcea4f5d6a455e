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

    /// The scopes that the calling thread is in.
    @SuppressWarnings("ThreadLocalUsage") // one for each recording
    private final ThreadLocal<ScopesOfThread<ScopeEvent>> scopes =
            ThreadLocal.withInitial(() -> new ScopesOfThread<>(ScopeEvent::commit));

    @Override
    public void accept(MemoryEvent told) {
        switch (told) {
            case MemoryEvent.Allocated block -> allocated(block);
            case MemoryEvent.SegmentAcquired segment ->
                segment(
                        new SegmentAcquiredEvent(),
                        segment.allocator(),
                        segment.device(),
                        segment.address(),
                        segment.byteSize());
            case MemoryEvent.SegmentReleased segment ->
                segment(
                        new SegmentReleasedEvent(),
                        segment.allocator(),
                        segment.device(),
                        segment.address(),
                        segment.byteSize());
            case MemoryEvent.PageMoved page -> moved(page);
            case MemoryEvent.Trimmed trim -> trimmed(trim);
            case MemoryEvent.CurrentChanged change -> changed(change);
            case MemoryEvent.ScopeEntered scope -> entered(scope);
            case MemoryEvent.ScopeLeft scope -> scopes.get().leave(scope.allocator());
            case MemoryEvent.Reclaimed reclaim -> reclaimed(reclaim);
            case MemoryEvent.OutOfMemory refusal -> refused(refusal.report());
            case MemoryEvent.Annotated annotation -> annotated(annotation);
            case MemoryEvent.Freed _,
                    MemoryEvent.UseRecorded _,
                    MemoryEvent.FreeDeferred _,
                    MemoryEvent.FreeCompleted _,
                    MemoryEvent.StreamWaited _,
                    MemoryEvent.StreamClosed _ -> {}
        }
    }

    private void allocated(MemoryEvent.Allocated block) {
        SlowAllocationEvent slow = new SlowAllocationEvent();
        if (slow.isEnabled() && block.nanos() >= SlowerThan.nanos()) {
            slow.allocator = block.allocator();
            slow.device = block.device();
            slow.stream = block.stream();
            slow.address = block.address();
            slow.byteSize = block.byteSize();
            slow.took = block.nanos();
            slow.commit();
        }
        AllocationSampleEvent sample = new AllocationSampleEvent();
        if (sample.isEnabled()) {
            int stripe = (int) Thread.currentThread().threadId() & (STRIPES - 1);
            if (sinceSample.addAndGet(stripe, block.byteSize()) >= SampleInterval.bytes()) {
                sample.allocator = block.allocator();
                sample.device = block.device();
                sample.stream = block.stream();
                sample.address = block.address();
                sample.byteSize = block.byteSize();
                sample.weight = sinceSample.getAndSet(stripe, 0);
                sample.commit();
            }
        }
    }

    private static void segment(SegmentEvent event, String allocator, int device, long address, long byteSize) {
        event.allocator = allocator;
        event.device = device;
        event.address = address;
        event.byteSize = byteSize;
        event.commit();
    }

    private static void moved(MemoryEvent.PageMoved page) {
        PageMovedEvent event = new PageMovedEvent();
        event.allocator = page.allocator();
        event.device = page.device();
        event.formerAddress = page.formerAddress();
        event.address = page.address();
        event.byteSize = page.byteSize();
        event.commit();
    }

    private static void trimmed(MemoryEvent.Trimmed trim) {
        TrimEvent event = new TrimEvent();
        event.allocator = trim.allocator();
        event.device = trim.device();
        event.keepBytes = trim.keepBytes();
        event.waited = trim.waited();
        event.returnedBytes = trim.returnedBytes();
        event.took = trim.nanos();
        event.commit();
    }

    private static void changed(MemoryEvent.CurrentChanged change) {
        CurrentChangedEvent event = new CurrentChangedEvent();
        event.allocator = change.allocator();
        event.device = change.device();
        event.former = change.former();
        event.commit();
    }

    private void entered(MemoryEvent.ScopeEntered scope) {
        ScopeEvent event = new ScopeEvent();
        if (event.isEnabled()) {
            event.allocator = scope.allocator();
            event.begin();
            scopes.get().enter(scope.allocator(), event);
        }
    }

    private static void reclaimed(MemoryEvent.Reclaimed reclaim) {
        ReclaimStepEvent event = new ReclaimStepEvent();
        event.device = reclaim.device();
        event.byteSize = reclaim.byteSize();
        event.step = reclaim.step().step().name();
        event.reclaimedBytes = reclaim.step().byteSize();
        event.took = reclaim.step().nanos();
        event.commit();
    }

    private static void refused(OutOfMemoryReport report) {
        OutOfMemoryEvent event = new OutOfMemoryEvent();
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

    private static void annotated(MemoryEvent.Annotated annotation) {
        AnnotationEvent event = new AnnotationEvent();
        event.text = annotation.text();
        event.commit();
    }
}
