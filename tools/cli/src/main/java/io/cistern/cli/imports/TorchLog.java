package io.cistern.cli.imports;

import io.cistern.cli.common.InputException;
import io.cistern.cli.imports.ForeignEvent.Kind;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.torch.TorchSnapshot.Block;
import io.cistern.cli.torch.TorchSnapshot.Event;
import io.cistern.cli.torch.TorchSnapshot.Segment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// Makes a log of a snapshot of PyTorch's.
///
/// 1. A block's `alloc` and `free_completed` are its allocation and its free. Between `free_requested` and
///    `free_completed`, other streams still used it; the snapshot does not say which. If the history of a
///    device has no completions, requests count as frees.
/// 2. Blocks that are live in the segments are live at the end.
/// 3. The histories of several devices are merged by their times.
final class TorchLog {
    private TorchLog() {}

    /// @param file the snapshot's name, for errors
    /// @throws InputException if it has no history
    static ForeignLog of(String file, TorchSnapshot snapshot) throws InputException {
        List<ForeignEvent> events = new ArrayList<>();
        for (int device = 0; device < snapshot.traces().size(); device++) {
            addEvents(device, snapshot.traces().get(device), events);
        }
        if (events.isEmpty()) {
            throw new InputException(
                    file,
                    "has no history: call torch.cuda.memory._record_memory_history() before what is to be recorded");
        }
        events.sort(Comparator.comparingLong(ForeignEvent::nanos)); // Stable: events of one device keep their order.
        return new ForeignLog(alive(snapshot.segments()), events);
    }

    private static void addEvents(int device, List<Event> trace, List<ForeignEvent> events) {
        boolean completions = trace.stream().anyMatch(event -> event.action().equals("free_completed"));
        for (Event event : trace) {
            Kind kind = switch (event.action()) {
                case "alloc" -> Kind.ALLOCATED;
                case "free_completed" -> Kind.FREED;
                case "free_requested", "free" -> completions ? null : Kind.FREED;
                case "oom" -> Kind.REFUSED;
                default -> null; // Segment events and others.
            };
            if (kind != null) {
                events.add(new ForeignEvent(
                        kind, event.address(), event.byteSize(), event.stream(), device, 0, event.nanos()));
            }
        }
    }

    private static List<ForeignEvent> alive(List<Segment> segments) {
        List<ForeignEvent> alive = new ArrayList<>();
        for (Segment segment : segments) {
            for (Block block : segment.blocks()) {
                if (block.isActive()) {
                    alive.add(new ForeignEvent(
                            Kind.ALLOCATED,
                            block.address(),
                            block.requestedBytes(),
                            segment.stream(),
                            segment.device(),
                            0,
                            0));
                }
            }
        }
        return alive;
    }
}
