package io.cistern.cli.fit;

import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.torch.TorchSnapshot.Annotation;
import io.cistern.cli.torch.TorchSnapshot.Block;
import io.cistern.cli.torch.TorchSnapshot.Event;
import io.cistern.cli.torch.TorchSnapshot.Frames;
import io.cistern.cli.torch.TorchSnapshot.Segment;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Recording.Refusal;
import io.cistern.cli.trace.Trace;
import io.cistern.diagnostics.MemoryEvent.Allocated;
import io.cistern.diagnostics.MemoryEvent.Freed;
import io.cistern.diagnostics.MemoryEvent.SegmentAcquired;
import io.cistern.diagnostics.MemoryEvent.SegmentReleased;
import io.cistern.observability.HistoryEntry;
import io.cistern.observability.MemorySnapshot;
import io.cistern.observability.MemorySnapshot.State;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// The memory of a replay in the form of a recorded snapshot: each block has the call stack and the time of the
/// recorded program, by the order of its allocation.
final class PlayedSnapshot {
    private static final int MAX_DEVICE = 1 << 10;
    private static final Frames NO_FRAMES = new Frames(List.of());

    private final Recording recording;
    private final List<Frames> stacks;
    private final Map<Long, Frames> live = new HashMap<>();
    /// Streams of the recorded program by those of the replay.
    private final Map<Long, Long> streams = new HashMap<>();
    private final int device;

    private PlayedSnapshot(Recording recording) {
        this.recording = recording;
        stacks = new ArrayList<>(
                Collections.nCopies(recording.callStacks().stacks().size(), null));
        device = (int) Math.min(MAX_DEVICE, recording.ordinals()[0]);
    }

    /// @param recording the program, of which no allocation failed in the replay
    /// @param taken in its replay on one thread
    static TorchSnapshot of(Recording recording, MemorySnapshot taken) {
        PlayedSnapshot played = new PlayedSnapshot(recording);
        List<Event> events = played.events(taken);
        List<Segment> segments = taken.segments().stream()
                .filter(MemorySnapshot.Segment::reported)
                .map(played::segment)
                .toList();
        List<Annotation> marks = new ArrayList<>();
        recording.recorder().marks().forEach(mark -> marks.add(new Annotation(mark.text(), mark.nanos())));
        for (Refusal refusal : recording.refusals()) {
            marks.add(new Annotation(
                    "the recorded program was refused here", recording.nanos()[refusal.row()]));
        }
        long end = events.isEmpty() ? 0 : events.getLast().nanos();
        marks.removeIf(mark -> mark.nanos() > end);
        List<List<Event>> traces = new ArrayList<>(Collections.nCopies(played.device, List.of()));
        traces.add(events);
        return new TorchSnapshot(segments, traces, marks, Map.of());
    }

    private List<Event> events(MemorySnapshot taken) {
        List<Event> events = new ArrayList<>();
        Trace trace = recording.trace();
        int row = -1;
        long nanos = 0;
        List<HistoryEntry> entries =
                taken.history().map(MemorySnapshot.History::entries).orElse(List.of());
        for (HistoryEntry entry : entries) {
            if (entry.event() instanceof Allocated || entry.event() instanceof Freed) {
                do {
                    row++;
                } while (!Trace.isOperation(trace.ops()[row]));
                nanos = recording.nanos()[row];
                long stream =
                        entry.event() instanceof Allocated made ? made.stream() : ((Freed) entry.event()).stream();
                streams.put(stream, recording.handles()[trace.streams()[row]]);
            }
            switch (entry.event()) {
                case Allocated made -> {
                    Frames frames = frames(recording.stacks()[row]);
                    live.put(made.address(), frames);
                    events.add(event(
                            "alloc", made.allocator(), made.address(), made.byteSize(), made.stream(), nanos, frames));
                }
                case Freed freed -> {
                    Frames frames = frames(recording.stacks()[row]);
                    live.remove(freed.address());
                    events.add(event(
                            "free",
                            freed.allocator(),
                            freed.address(),
                            freed.byteSize(),
                            freed.stream(),
                            nanos,
                            frames));
                }
                case SegmentAcquired got ->
                    events.add(event(
                            "segment_alloc",
                            got.allocator(),
                            got.address(),
                            got.byteSize(),
                            TorchSnapshot.NO_STREAM,
                            nanos,
                            NO_FRAMES));
                case SegmentReleased gone ->
                    events.add(event(
                            "segment_free",
                            gone.allocator(),
                            gone.address(),
                            gone.byteSize(),
                            TorchSnapshot.NO_STREAM,
                            nanos,
                            NO_FRAMES));
                default -> {}
            }
        }
        return events;
    }

    private Event event(
            String action, String allocator, long address, long byteSize, long stream, long nanos, Frames frames) {
        return new Event(
                action, allocator, address, byteSize, streams.getOrDefault(stream, stream), nanos, "", "", frames);
    }

    private Frames frames(int stack) {
        Frames known = stacks.get(stack);
        if (known == null) {
            known = new Frames(recording.callStacks().lines(stack));
            stacks.set(stack, known);
        }
        return known;
    }

    private Segment segment(MemorySnapshot.Segment segment) {
        return new Segment(
                device,
                segment.allocator(),
                segment.address(),
                segment.byteSize(),
                streams.getOrDefault(segment.stream().orElse(0), 0L),
                segment.blocks().stream().map(this::block).toList());
    }

    private Block block(MemorySnapshot.Block block) {
        String state = block.state() == State.LIVE
                ? "active_allocated"
                : block.state() == State.WAITING ? "active_pending_free" : "inactive";
        return new Block(
                block.address(),
                block.byteSize(),
                block.requestedBytes(),
                state,
                live.getOrDefault(block.address(), NO_FRAMES));
    }
}
