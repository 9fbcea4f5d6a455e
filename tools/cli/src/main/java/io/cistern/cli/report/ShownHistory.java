package io.cistern.cli.report;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.torch.TorchSnapshot.Event;
import io.cistern.cli.torch.TorchSnapshot.Frames;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// The events that a page shows. Of a long history, small blocks that were freed again are drawn as one block
/// that grows and shrinks, so that a page stays small. Those that were live at the peak, at the last refusal or at the
/// end, or waited for another stream after their free, are kept: what a page shows of these moments is exact.
///
/// @param traces those of each device
/// @param note what was put together, for people; empty if all events are there
record ShownHistory(List<Shown> traces, String note) {
    private static final int MAX_EVENTS = 15_000;
    /// Moments at which the block for all small ones changes its size.
    private static final int MOMENTS = 2_000;
    /// The address of that block, which no other has.
    static final long TOGETHER = -1;

    /// The events of one device.
    ///
    /// @param peak the index of the event after which most was live; -1 if all events are there
    /// @param refusedPeak the index of the refusal at which most was requested, counting the refused bytes; -1 if
    ///     that was at the peak, or if all events are there
    /// @param together how many blocks were put together, their bytes, and when the last was freed, by place
    record Shown(List<Event> events, int peak, int refusedPeak, Map<Place, long[]> together) {}

    /// Where blocks were allocated and freed.
    ///
    /// @param thread what the program noted with the allocation
    /// @param freedBy what it noted with the free
    record Place(Frames frames, String pool, long stream, String thread, long freedOn, String freedBy) {}

    static ShownHistory of(TorchSnapshot snapshot) {
        if (snapshot.eventCount() <= MAX_EVENTS) {
            return new ShownHistory(
                    snapshot.traces().stream()
                            .map(trace -> new Shown(trace, -1, -1, Map.of()))
                            .toList(),
                    "");
        }
        List<Shown> traces = new ArrayList<>();
        int devices = (int)
                snapshot.traces().stream().filter(trace -> !trace.isEmpty()).count();
        long largest = 0;
        for (List<Event> trace : snapshot.traces()) {
            Trace whole = new Trace(trace);
            long limit = whole.limit(MAX_EVENTS / devices - 2 * MOMENTS / devices);
            largest = Math.max(largest, limit);
            traces.add(whole.shown(limit));
        }
        return new ShownHistory(
                traces, "most blocks below " + ByteSize.format(largest) + " that were freed are drawn as one");
    }

    private static final class Trace {
        private final List<Event> events;
        /// For the free of a block that may be put together, its allocation, and vice versa; else -1.
        private final int[] others;
        /// The last event before each moment that is kept as it was.
        private final int peak;

        private final int refusal;
        private final int refusedPeak;

        Trace(List<Event> events) {
            this.events = events;
            others = new int[events.size()];
            Arrays.fill(others, -1);
            long live = 0;
            long mostLive = 0;
            long mostRequested = 0;
            int most = -1;
            int requested = -1;
            int refused = -1;
            for (int i = 0; i < others.length; i++) {
                Event event = events.get(i);
                switch (event.action()) {
                    case "alloc" -> live += event.byteSize();
                    case "free", "free_completed" -> live -= event.byteSize();
                    case "oom" -> refused = i;
                    default -> {}
                }
                if (live > mostLive) {
                    mostLive = live;
                    most = i;
                }
                long now = live + (event.action().equals("oom") ? event.byteSize() : 0);
                if (now > mostRequested) {
                    mostRequested = now;
                    requested = i;
                }
            }
            peak = most;
            refusal = refused;
            refusedPeak = requested == most ? -1 : requested;
            pair();
        }

        private void pair() {
            Map<Long, Integer> open = new HashMap<>();
            for (int i = 0; i < others.length; i++) {
                Event event = events.get(i);
                switch (event.action()) {
                    case "alloc" -> open.put(event.address(), i);
                    case "free", "free_requested" -> {
                        int freed = i;
                        Integer made = open.remove(event.address());
                        boolean isAtOnce = event.action().equals("free") || TorchSnapshot.isFreedAtOnce(events, i);
                        if (made != null
                                && isAtOnce
                                && IntStream.of(peak, refusal, refusedPeak)
                                        .noneMatch(moment -> isBetween(moment, made, freed))) {
                            others[made] = i;
                            others[i] = made;
                        }
                    }
                    default -> {}
                }
            }
        }

        private static boolean isBetween(int moment, int made, int freed) {
            return made <= moment && moment < freed;
        }

        private long size(int i) {
            return events.get(Math.min(i, others[i])).byteSize();
        }

        /// Returns the size below which blocks are put together, so that about that many events are left.
        long limit(int most) {
            long[] sorted = IntStream.range(0, others.length)
                    .filter(i -> others[i] >= 0)
                    .mapToLong(this::size)
                    .sorted()
                    .toArray();
            long completed = events.stream()
                    .filter(event -> event.action().equals("free_completed"))
                    .count();
            double each = sorted.length == 0 ? 1 : 1 + (double) completed / sorted.length;
            long rest = events.size() - sorted.length - completed;
            int kept = (int) Math.clamp((most - rest) / each, 0, sorted.length);
            return kept == sorted.length ? 0 : kept == 0 ? Long.MAX_VALUE : sorted[sorted.length - kept] + 1;
        }

        Shown shown(long limit) {
            List<Event> shown = new ArrayList<>();
            Map<Place, long[]> counts = new LinkedHashMap<>();
            Together together = new Together(shown, limit);
            int step = Math.ceilDiv(Math.max(1, events.size()), MOMENTS);
            int shownPeak = -1;
            int shownRefusedPeak = -1;
            int wait = step;
            for (int i = 0; i < others.length; i++) {
                Event event = events.get(i);
                boolean isAtOnce = TorchSnapshot.isFreedAtOnce(events, i);
                if (i == peak || i == refusal || i == refusedPeak) {
                    together.showNow(event);
                }
                if (others[i] < 0 || size(i) >= limit) {
                    shown.add(event);
                } else if (i < others[i]) {
                    together.change(event.byteSize());
                } else {
                    Event made = events.get(others[i]);
                    together.change(-made.byteSize());
                    count(made, event, counts);
                    i += isAtOnce ? 1 : 0;
                    isAtOnce = false;
                }
                shownPeak = i == peak ? shown.size() - 1 : shownPeak;
                shownRefusedPeak = i == refusedPeak ? shown.size() - 1 : shownRefusedPeak;
                if (--wait <= 0 && !isAtOnce) {
                    together.show(event);
                    wait = step;
                }
            }
            if (!events.isEmpty()) {
                together.show(events.getLast());
                together.showNow(events.getLast());
            }
            return new Shown(shown, shownPeak, shownRefusedPeak, counts);
        }

        private static void count(Event made, Event freed, Map<Place, long[]> counts) {
            long[] count = counts.computeIfAbsent(
                    new Place(made.frames(), made.pool(), made.stream(), made.thread(), freed.stream(), freed.thread()),
                    _ -> new long[3]);
            count[0]++;
            count[1] += made.byteSize();
            count[2] = freed.nanos();
        }
    }

    /// The block for all small ones: at each moment it is as large as they were at most since the one before.
    private static final class Together {
        private final List<Event> shown;
        private final Frames frames;
        private long bytes;
        private long mostBytes;
        private long shownBytes;

        Together(List<Event> shown, long limit) {
            this.shown = shown;
            frames = new Frames(List.of("blocks below " + ByteSize.format(limit) + ", together"));
        }

        void change(long change) {
            bytes += change;
            mostBytes = Math.max(mostBytes, bytes);
        }

        /// Shows how large the block is, whatever it was before.
        void showNow(Event at) {
            mostBytes = bytes;
            show(at);
        }

        void show(Event at) {
            if (mostBytes != shownBytes) {
                if (shownBytes > 0) {
                    shown.add(event("free", shownBytes, at));
                }
                if (mostBytes > 0) {
                    shown.add(event("alloc", mostBytes, at));
                }
                shownBytes = mostBytes;
            }
            mostBytes = bytes;
        }

        private Event event(String action, long byteSize, Event at) {
            return new Event(action, at.pool(), TOGETHER, byteSize, at.stream(), at.nanos(), "", "", frames);
        }
    }
}
