package io.cistern.cli.report;

import static io.cistern.cli.common.ResultWriter.array;
import static io.cistern.cli.common.ResultWriter.object;

import io.cistern.cli.report.ShownHistory.Place;
import io.cistern.cli.report.ShownHistory.Shown;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.torch.TorchSnapshot.Block;
import io.cistern.cli.torch.TorchSnapshot.Event;
import io.cistern.cli.torch.TorchSnapshot.Frames;
import io.cistern.cli.torch.TorchSnapshot.Segment;
import io.cistern.cli.trace.CallStacks;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Writes a snapshot of PyTorch's as the page reads Cistern's own. PyTorch does not say when it was taken, nor how
/// much memory the devices have.
///
/// | PyTorch's | a page's |
/// |---|---|
/// | `alloc`, `free` | allocated, freed |
/// | `free_requested` | freed; and deferred, unless `free_completed` follows at once |
/// | `free_completed` | completed |
/// | `segment_alloc`, `segment_map` | acquired |
/// | `segment_free`, `segment_unmap` | released |
/// | `active_allocated`, any other `active`, `inactive` | live, waiting, idle |
final class TorchJson {
    /// A line of a page shows less, and events that share a long stack would make a huge file.
    private static final int MAX_FRAMES = 64;

    private final CallStacks stacks = new CallStacks();
    private final IdentityHashMap<Object, Integer> stackNumbers = new IdentityHashMap<>();

    private TorchJson() {}

    /// Returns the fields of a JSON object; those that are null are left out. Parts get their call stacks' numbers as
    /// they are written, so the stacks come last.
    ///
    /// @param reason what the snapshot shows
    /// @param fit how the program fits
    static Map<String, @Nullable Object> of(TorchSnapshot snapshot, String reason, ShownFit fit) {
        return new TorchJson().fields(snapshot, reason, fit);
    }

    private Map<String, @Nullable Object> fields(TorchSnapshot snapshot, String reason, ShownFit fit) {
        ShownHistory history = ShownHistory.of(snapshot);
        return object(
                "reason", reason,
                "note", unlessEmpty(history.note()),
                "fit", fit.answers().isEmpty() ? null : array(fit.answers(), ShownFit.Answer::fields),
                "leaks", array(fit.leaks(), ShownFit.Leaking::fields),
                "settings", snapshot.settings(),
                "devices", array(devices(snapshot), device -> object("device", device)),
                "segments", array(snapshot.segments(), this::segment),
                "history", snapshot.eventCount() > 0 ? history(snapshot, history) : null,
                "frames", stacks.frames(),
                "stacks", stacks.stacks());
    }

    private static @Nullable String unlessEmpty(String text) {
        return text.isEmpty() ? null : text;
    }

    private static Set<Integer> devices(TorchSnapshot snapshot) {
        Set<Integer> devices = new TreeSet<>();
        snapshot.segments().forEach(segment -> devices.add(segment.device()));
        IntStream.range(0, snapshot.traces().size())
                .filter(device -> !snapshot.traces().get(device).isEmpty())
                .forEach(devices::add);
        return devices;
    }

    private Map<String, @Nullable Object> segment(Segment segment) {
        return object(
                "allocator", segment.pool(),
                "device", segment.device(),
                "address", segment.address(),
                "byteSize", segment.byteSize(),
                "stream", segment.stream(),
                "blocks", array(segment.blocks(), this::block));
    }

    private Map<String, @Nullable Object> block(Block block) {
        String state = block.isWaiting() ? "waiting" : block.isActive() ? "live" : "idle";
        return object(
                "address", block.address(),
                "byteSize", block.byteSize(),
                "requestedBytes", state.equals("idle") ? 0 : block.requestedBytes(),
                "state", state,
                "callStack", stack(block.frames()));
    }

    private Map<String, @Nullable Object> history(TorchSnapshot snapshot, ShownHistory history) {
        Iterable<Map<String, @Nullable Object>> events =
                () -> events(snapshot, history).iterator();
        Iterable<Map<String, @Nullable Object>> together =
                () -> together(history).iterator();
        return object("capacity", snapshot.eventCount(), "lost", 0, "events", events, "together", together);
    }

    private List<Map<String, @Nullable Object>> events(TorchSnapshot snapshot, ShownHistory history) {
        List<Map<String, @Nullable Object>> events = new ArrayList<>();
        for (int device = 0; device < history.traces().size(); device++) {
            addEvents(device, history.traces().get(device), events);
        }
        snapshot.annotations()
                .forEach(each -> events.add(object("event", "annotated", "nanos", each.nanos(), "text", each.text())));
        return events;
    }

    private List<Map<String, @Nullable Object>> together(ShownHistory history) {
        List<Map<String, @Nullable Object>> all = new ArrayList<>();
        for (int device = 0; device < history.traces().size(); device++) {
            int ordinal = device;
            history.traces()
                    .get(device)
                    .together()
                    .forEach((place, counts) -> all.add(together(ordinal, place, counts)));
        }
        return all;
    }

    private Map<String, @Nullable Object> together(int device, Place place, long[] counts) {
        return object(
                "device", device,
                "allocator", place.pool(),
                "stream", place.stream(),
                "freedOn", place.freedOn(),
                "thread", unlessEmpty(place.thread()),
                "freedBy", unlessEmpty(place.freedBy()),
                "blocks", counts[0],
                "byteSize", counts[1],
                "lastNanos", counts[2],
                "callStack", stack(place.frames()));
    }

    private void addEvents(int device, Shown shown, List<Map<String, @Nullable Object>> events) {
        List<Event> trace = shown.events();
        Set<Long> freedAtOnce = new HashSet<>();
        for (int i = 0; i < trace.size(); i++) {
            Event event = trace.get(i);
            switch (event.action()) {
                case "alloc" -> events.add(event("allocated", i == shown.peak(), device, event));
                case "free" -> events.add(event("freed", false, device, event));
                case "free_requested" -> {
                    events.add(event("freed", false, device, event));
                    if (TorchSnapshot.isFreedAtOnce(trace, i)) {
                        freedAtOnce.add(event.address());
                    } else {
                        events.add(event("freeDeferred", false, device, event));
                    }
                }
                case "free_completed" -> {
                    if (!freedAtOnce.remove(event.address())) {
                        events.add(event("freeCompleted", false, device, event));
                    }
                }
                case "segment_alloc", "segment_map" -> events.add(event("segmentAcquired", false, device, event));
                case "segment_free", "segment_unmap" -> events.add(event("segmentReleased", false, device, event));
                case "oom" -> events.add(event("outOfMemory", i == shown.refusedPeak(), device, event));
                default -> {} // A page shows nothing like it.
            }
        }
    }

    private Map<String, @Nullable Object> event(String name, boolean isPeak, int device, Event event) {
        boolean isOfBlock = !event.action().equals("oom");
        return object(
                "event",
                name,
                "peak",
                isPeak ? true : null,
                "nanos",
                event.nanos(),
                "thread",
                unlessEmpty(event.thread()),
                "device",
                device,
                "allocator",
                event.pool(),
                "address",
                isOfBlock ? event.address() : null,
                "together",
                (isOfBlock && event.address() == ShownHistory.TOGETHER) ? true : null,
                "byteSize",
                event.byteSize(),
                "stream",
                event.stream() == TorchSnapshot.NO_STREAM ? null : event.stream(),
                "callStack",
                name.equals("freed") ? null : stack(event.frames())); // A free shows that of the allocation.
    }

    private @Nullable Integer stack(Frames frames) {
        int number = stackNumbers.computeIfAbsent(frames, _ -> stacks.of(frames.lines(MAX_FRAMES)));
        return number == CallStacks.NONE ? null : number;
    }
}
