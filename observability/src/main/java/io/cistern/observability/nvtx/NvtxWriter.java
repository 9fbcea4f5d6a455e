package io.cistern.observability.nvtx;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.observability.internal.ScopesOfThread;
import java.util.function.Consumer;

/// Turns the events of a device memory into ranges and marks.
///
/// **Threads.** Any; each event arrives on the thread that caused it.
final class NvtxWriter implements Consumer<MemoryEvent> {
    private final NvtxLibrary library;

    /// The ranges of the scopes that the calling thread is in. They are process ranges, because a virtual
    /// thread may leave a scope on another carrier.
    @SuppressWarnings("ThreadLocalUsage") // one for each registration
    private final ThreadLocal<ScopesOfThread<Long>> scopes;

    NvtxWriter(NvtxLibrary library) {
        this.library = library;
        scopes = ThreadLocal.withInitial(() -> new ScopesOfThread<>(library::end));
    }

    @Override
    public void accept(MemoryEvent told) {
        switch (told) {
            case MemoryEvent.Annotated annotation -> library.mark(annotation.text());
            case MemoryEvent.ScopeEntered scope ->
                scopes.get().enter(scope.allocator(), library.start("scope " + scope.allocator()));
            case MemoryEvent.ScopeLeft scope -> scopes.get().leave(scope.allocator());
            case MemoryEvent.Trimmed trim ->
                library.mark("trim " + trim.allocator() + ", device " + trim.device() + ": " + trim.returnedBytes()
                        + " bytes in " + trim.nanos() / 1000 + " µs");
            case MemoryEvent.Reclaimed reclaim ->
                library.mark("reclaim for " + ByteSizes.count(reclaim.byteSize()) + ", device " + reclaim.device()
                        + ", " + reclaim.step());
            case MemoryEvent.CurrentChanged change ->
                library.mark("current allocator of device " + change.device() + ": " + change.former() + " -> "
                        + change.allocator());
            case MemoryEvent.OutOfMemory refusal -> library.mark(text(refusal.report()));
            default -> {} // nothing for a time line
        }
    }

    private static String text(OutOfMemoryReport report) {
        return "out of memory: " + ByteSizes.count(report.byteSize()) + ", device " + report.device() + "; "
                + report.deviceText();
    }
}
