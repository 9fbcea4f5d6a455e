package io.cistern.cli.report;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.torch.TorchSnapshot.Event;
import io.cistern.cli.torch.TorchSnapshot.Frames;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// The events that a page shows. Of a long history, those of small blocks that were freed again are put together
/// into one block that grows and shrinks, so that a page stays small and curves keep their peaks.
///
/// @param traces the events of each device
/// @param note what was put together, for people; empty if all events are there
record ShownHistory(List<List<Event>> traces, String note) {
    private static final int MAX_EVENTS = 15_000;
    /// Moments at which the block for all small ones changes its size.
    private static final int MOMENTS = 2_000;
    /// The address of that block, where no memory lies.
    private static final long TOGETHER = 1;

    static ShownHistory of(TorchSnapshot snapshot) {
        if (snapshot.eventCount() <= MAX_EVENTS) {
            return new ShownHistory(snapshot.traces(), "");
        }
        List<List<Event>> traces = new ArrayList<>();
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
                traces, "blocks below " + ByteSize.format(largest) + " that were freed are drawn as one");
    }

    /// The events of one device.
    private static final class Trace {
        private final List<Event> events;
        /// For each allocation that is freed again, its size; else -1. For its free, the same.
        private final long[] sizes;

        Trace(List<Event> events) {
            this.events = events;
            sizes = new long[events.size()];
            Arrays.fill(sizes, -1);
            Map<Long, Integer> open = new HashMap<>();
            for (int i = 0; i < sizes.length; i++) {
                Event event = events.get(i);
                switch (event.action()) {
                    case "alloc" -> open.put(event.address(), i);
                    case "free", "free_requested" -> {
                        Integer made = open.remove(event.address());
                        if (made != null) {
                            sizes[made] = sizes[i] = events.get(made).byteSize();
                        }
                    }
                    default -> {}
                }
            }
        }

        /// Returns the size below which blocks are put together, so that about that many events are left.
        long limit(int most) {
            long[] sorted =
                    Arrays.stream(sizes).filter(size -> size >= 0).sorted().toArray();
            long completed = events.stream()
                    .filter(event -> event.action().equals("free_completed"))
                    .count();
            double each = sorted.length == 0 ? 1 : 1 + (double) completed / sorted.length;
            long others = events.size() - sorted.length - completed;
            int kept = (int) Math.clamp((most - others) / each, 0, sorted.length);
            return kept == sorted.length ? 0 : kept == 0 ? Long.MAX_VALUE : sorted[sorted.length - kept] + 1;
        }

        List<Event> shown(long limit) {
            List<Event> shown = new ArrayList<>();
            Map<Long, Boolean> completing = new HashMap<>();
            Together together = new Together(shown, limit);
            int step = Math.ceilDiv(Math.max(1, events.size()), MOMENTS);
            for (int i = 0; i < sizes.length; i++) {
                Event event = events.get(i);
                if (sizes[i] >= 0 && sizes[i] < limit) {
                    boolean isMade = event.action().equals("alloc");
                    together.change(isMade ? sizes[i] : -sizes[i]);
                    if (!isMade) {
                        completing.put(event.address(), true);
                    }
                } else if (!event.action().equals("free_completed") || completing.remove(event.address()) == null) {
                    shown.add(event);
                }
                if ((i + 1) % step == 0 || i == sizes.length - 1) {
                    together.show(event);
                }
            }
            return shown;
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
