package io.cistern.internal.events;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.MemoryEvent.OutOfMemory.RefusalCause;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.TriedStep;
import org.jspecify.annotations.Nullable;

/// Makes events. Code that has an event names a factory and passes an object and numbers, so it needs no Java
/// heap: [Observers] calls the factory where a failure only loses the event.
public final class Events {
    /// Makes an event from one object and some numbers. Factories exist before events do.
    @FunctionalInterface
    public interface Factory<T> {
        /// Returns the event; null if there is nothing to report.
        @Nullable
        MemoryEvent make(T about, int device, long first, long second, long third, long fourth);
    }

    /// Arguments: allocator; address, bytes.
    public static final Factory<String> SEGMENT_ACQUIRED = (allocator, device, address, byteSize, _, _) ->
            new MemoryEvent.SegmentAcquired(allocator, device, address, byteSize);

    /// Arguments: allocator; address, bytes.
    public static final Factory<String> SEGMENT_RELEASED = (allocator, device, address, byteSize, _, _) ->
            new MemoryEvent.SegmentReleased(allocator, device, address, byteSize);

    /// Arguments: allocator; address, bytes.
    public static final Factory<String> FREE_DEFERRED = (allocator, device, address, byteSize, _, _) ->
            new MemoryEvent.FreeDeferred(allocator, device, address, byteSize);

    /// Arguments: allocator; address, bytes.
    public static final Factory<String> FREE_COMPLETED = (allocator, device, address, byteSize, _, _) ->
            new MemoryEvent.FreeCompleted(allocator, device, address, byteSize);

    /// Arguments: allocator; former address, address, bytes.
    public static final Factory<String> PAGE_MOVED = (allocator, device, formerAddress, address, byteSize, _) ->
            new MemoryEvent.PageMoved(allocator, device, formerAddress, address, byteSize);

    /// Arguments: allocator; bytes to keep, bytes returned, nanoseconds.
    public static final Factory<String> TRIMMED = trimmed(false);

    /// The same for a trim that waited for running work.
    public static final Factory<String> TRIMMED_AFTER_WORK = trimmed(true);

    /// Argument: allocator.
    public static final Factory<String> SCOPE_ENTERED =
            (allocator, _, _, _, _, _) -> new MemoryEvent.ScopeEntered(allocator);

    /// Argument: allocator.
    public static final Factory<String> SCOPE_LEFT = (allocator, _, _, _, _, _) -> new MemoryEvent.ScopeLeft(allocator);

    /// Arguments: step; bytes of the request.
    public static final Factory<TriedStep> RECLAIMED =
            (step, device, byteSize, _, _, _) -> new MemoryEvent.Reclaimed(device, byteSize, step);

    /// Argument: report.
    public static final Factory<OutOfMemoryReport> OUT_OF_MEMORY = refused(RefusalCause.MEMORY);

    /// The same for a request that a limit had no room for.
    public static final Factory<OutOfMemoryReport> LIMIT_REACHED = refused(RefusalCause.LIMIT);

    /// The same for a request that can never fit.
    public static final Factory<OutOfMemoryReport> TOO_LARGE = refused(RefusalCause.TOO_LARGE);

    /// Arguments: any text; the stream, the block's address.
    public static final Factory<String> USE_RECORDED =
            (_, device, stream, address, _, _) -> new MemoryEvent.UseRecorded(device, stream, address);

    /// Arguments: any text; the waiting stream, the awaited one.
    public static final Factory<String> STREAM_WAITED =
            (_, device, stream, awaited, _, _) -> new MemoryEvent.StreamWaited(device, stream, awaited);

    /// Arguments: any text; the stream.
    public static final Factory<String> STREAM_CLOSED =
            (_, device, stream, _, _, _) -> new MemoryEvent.StreamClosed(device, stream);

    /// Argument: the text.
    public static final Factory<String> ANNOTATED = (text, _, _, _, _, _) -> new MemoryEvent.Annotated(text);

    /// Delivers no event of its own, only the posted ones.
    static final Factory<String> NOTHING_MORE = (_, _, _, _, _, _) -> null;

    private Events() {}

    private static Factory<OutOfMemoryReport> refused(RefusalCause cause) {
        return (report, _, _, _, _, _) -> new MemoryEvent.OutOfMemory(report, cause);
    }

    private static Factory<String> trimmed(boolean afterWork) {
        return (allocator, device, keepBytes, returnedBytes, nanos, _) ->
                new MemoryEvent.Trimmed(allocator, device, keepBytes, afterWork, returnedBytes, nanos);
    }

    /// Loads this class, and so makes the factories, which need Java heap, before there are observers.
    static void prepare() {}
}
