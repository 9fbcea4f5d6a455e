package io.cistern.cli.imports;

import io.cistern.cli.common.InputException;
import io.cistern.cli.imports.ForeignEvent.Kind;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.torch.TorchSnapshot.Block;
import io.cistern.cli.torch.TorchSnapshot.Event;
import io.cistern.cli.torch.TorchSnapshot.Frames;
import io.cistern.cli.torch.TorchSnapshot.Segment;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Recorder;
import io.cistern.cli.trace.Recorder.Mark;
import io.cistern.cli.trace.Recorder.Refused;
import io.cistern.cli.trace.Recorder.Reserved;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Makes a log from a PyTorch snapshot.
///
/// 1. A block's `alloc` and `free_completed` are its allocation and its free. Between `free_requested` and
///    `free_completed`, other streams still used it; the snapshot does not say which.
/// 2. Blocks that are live in the segments are live at the end.
/// 3. The segments at the end and their events before give what was reserved at any moment.
/// 4. The histories of several devices are merged by their times. Those of one device keep their order: a clock may go
///    back between two threads.
/// 5. Segments that were released one after the other within the program's `empty_cache` are one trim. An allocation
///    that releases segments has other frames. A device with private pools gets no trims: these pools keep their
///    segments, and the history does not say which blocks lay there.
final class TorchLog {
    private static final int MAX_FRAMES = 64;
    private static final String EMPTY_CACHE = "empty_cache(";

    private final List<ForeignEvent> events = new ArrayList<>();
    private final List<Reserved> reserved = new ArrayList<>();
    /// By the address of its event.
    private final List<Refused> refused = new ArrayList<>();
    private final CallStacks stacks = new CallStacks();
    private final IdentityHashMap<Object, Integer> known = new IdentityHashMap<>();

    private TorchLog() {}

    /// @param file the snapshot's name, for errors
    /// @throws InputException if it has no history
    static ForeignLog of(String file, TorchSnapshot snapshot) throws InputException {
        TorchLog log = new TorchLog();
        for (int device = 0; device < snapshot.traces().size(); device++) {
            List<Event> trace = snapshot.traces().get(device);
            log.addEvents(device, trace, snapshot.segments());
        }
        if (log.events.stream().allMatch(event -> event.kind() == Kind.TRIMMED)) {
            throw new InputException(
                    file,
                    "has no history: call torch.cuda.memory._record_memory_history() before the code to record"
                            + (snapshot.eventCount() == 0
                                    ? "; `cistern report " + file + "` shows its memory without it"
                                    : ""));
        }
        log.events.sort(Comparator.comparingLong(ForeignEvent::nanos));
        Recorder recorder = new Recorder(
                snapshot.recorder(),
                0,
                log.reserved,
                log.refusedInOrder(),
                snapshot.annotations().stream()
                        .map(each -> new Mark(each.nanos(), each.text()))
                        .toList(),
                snapshot.settings());
        return new ForeignLog(
                log.alive(snapshot.segments()), log.events, snapshot.segments(), log.stacks, recorder, null);
    }

    private void addEvents(int device, List<Event> trace, List<Segment> segments) {
        boolean trims = segments.stream().noneMatch(each -> each.device() == device && each.isPrivate());
        boolean wasTrimming = false;
        long held = heldAtFirst(device, trace, segments);
        if (held > 0 || !trace.isEmpty()) {
            addReserved(0, device, held);
        }
        long nanos = 0;
        for (int i = 0; i < trace.size(); i++) {
            Event event = trace.get(i);
            nanos = Math.max(nanos, event.nanos());
            boolean isTrimming = trims && isOfEmptyCache(event);
            if (isTrimming && !wasTrimming) {
                events.add(new ForeignEvent(Kind.TRIMMED, 0, 0, 0, device, 0, nanos, stack(event)));
            }
            wasTrimming = isTrimming;
            if (growth(event) != 0) {
                held += growth(event);
                addReserved(nanos, device, held);
            }
            Kind kind = kind(event);
            if (kind != null && !TorchSnapshot.isFreedAtOnce(trace, i)) {
                long address = event.address();
                if (kind == Kind.REFUSED) {
                    address = refused.size();
                    refused.add(new Refused(event.address(), Math.max(0, held)));
                }
                events.add(new ForeignEvent(
                        kind, address, event.byteSize(), event.stream(), device, 0, nanos, stack(event)));
            }
        }
    }

    private static @Nullable Kind kind(Event event) {
        return switch (event.action()) {
            case "alloc" -> Kind.ALLOCATED;
            case "free_requested" -> Kind.FREE_REQUESTED;
            case "free_completed", "free" -> Kind.FREED;
            case "oom" -> Kind.REFUSED;
            default -> null; // Segment events and others.
        };
    }

    private static boolean isOfEmptyCache(Event event) {
        return growth(event) < 0 && event.frames().all().stream().anyMatch(line -> line.startsWith(EMPTY_CACHE));
    }

    /// Returns the stack of an event. Notes of the program and the category stand at its outer end.
    private int stack(Event event) {
        int known = stack(event.frames());
        if (event.thread().isEmpty() && event.category().isEmpty()) {
            return known;
        }
        List<String> lines = new ArrayList<>(stacks.lines(known));
        addNote("category", event.category(), lines);
        addNote("noted", event.thread(), lines);
        return stacks.of(lines);
    }

    private static void addNote(String title, String text, List<String> lines) {
        if (!text.isEmpty()) {
            lines.add(title + ": " + text);
        }
    }

    private int stack(Frames frames) {
        return known.computeIfAbsent(frames, _ -> stacks.of(frames.lines(MAX_FRAMES)));
    }

    /// Returns what the allocator held when the history began; less than nothing if the file lacks segments.
    private static long heldAtFirst(int device, List<Event> trace, List<Segment> segments) {
        return segments.stream()
                        .filter(each -> each.device() == device)
                        .mapToLong(Segment::byteSize)
                        .sum()
                - trace.stream().mapToLong(TorchLog::growth).sum();
    }

    private void addReserved(long nanos, int device, long held) {
        reserved.add(new Reserved(nanos, device, Math.max(0, held)));
    }

    private List<Refused> refusedInOrder() {
        return events.stream()
                .filter(event -> event.kind() == Kind.REFUSED)
                .map(event -> refused.get((int) event.address()))
                .toList();
    }

    private static long growth(Event event) {
        return switch (event.action()) {
            case "segment_alloc", "segment_map" -> event.byteSize();
            case "segment_free", "segment_unmap" -> -event.byteSize();
            default -> 0;
        };
    }

    private List<ForeignEvent> alive(List<Segment> segments) {
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
                            0,
                            stack(block.frames())));
                }
            }
        }
        return alive;
    }
}
