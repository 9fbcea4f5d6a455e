package io.cistern.cli.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.report.ShownHistory.Place;
import io.cistern.cli.report.ShownHistory.Shown;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.torch.TorchSnapshot.Event;
import io.cistern.cli.torch.TorchSnapshot.Frames;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Whatever is drawn as one, counts are those of the events, and what was live at the peak and at the refusal is shown.
final class ShownHistoryTests {
    private static final int STEPS = 20_000;
    private static final int MOST_LIVE = 500;

    private final List<Event> events = new ArrayList<>();
    private final Map<Long, Event> live = new TreeMap<>();
    /// By stream and site.
    private final Map<String, Long> made = new HashMap<>();

    private long liveBytes;
    private long peakBytes;
    private Map<Long, Event> atPeak = Map.of();
    private Map<Long, Event> atRefusal = Map.of();

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void countsAndDecisiveMomentsAreThoseOfTheEvents(long seed) {
        run(new SplittableRandom(seed));

        Shown shown = ShownHistory.of(new TorchSnapshot(List.of(), List.of(events), List.of(), Map.of()))
                .traces()
                .getFirst();

        assertThat(shown.events()).hasSizeLessThan(events.size() / 2);
        Map<String, Long> counted = new HashMap<>();
        shown.events().stream()
                .filter(event -> event.action().equals("alloc") && event.address() != ShownHistory.TOGETHER)
                .forEach(event -> counted.merge(key(event.stream(), event.frames()), event.byteSize(), Long::sum));
        for (Map.Entry<Place, long[]> each : shown.together().entrySet()) {
            counted.merge(key(each.getKey().stream(), each.getKey().frames()), each.getValue()[1], Long::sum);
        }
        assertThat(counted).isEqualTo(made);
        assertThat(liveAfter(shown, shown.peak())).isEqualTo(atPeak);
        assertThat(drawnTogether(shown, shown.peak())).isZero();
        int refusal = shown.events().stream().map(Event::action).toList().indexOf("oom");
        assertThat(liveAfter(shown, refusal)).isEqualTo(atRefusal);
        assertThat(drawnTogether(shown, refusal)).isZero();
        assertThat(shown.refusedPeak()).isEqualTo(refusal);
        assertThat(drawnTogether(shown, shown.events().size() - 1)).isZero();
    }

    private void run(SplittableRandom random) {
        for (int step = 0; step < STEPS; step++) {
            if (step == STEPS / 2) {
                event("oom", 0, 1 << 30, 0, 0);
                atRefusal = new TreeMap<>(live);
            }
            if (live.size() < MOST_LIVE && random.nextInt(5) < 3) {
                allocate(random);
            } else if (!live.isEmpty()) {
                List<Long> addresses = List.copyOf(live.keySet());
                Event block = live.remove(addresses.get(random.nextInt(addresses.size())));
                liveBytes -= block.byteSize();
                event("free_requested", block.address(), block.byteSize(), block.stream(), 0);
                event("free_completed", block.address(), block.byteSize(), block.stream(), 0);
            }
        }
    }

    private void allocate(SplittableRandom random) {
        long address = 4096L * random.nextInt(1, 1 << 20);
        if (!live.containsKey(address)) {
            Event block = event("alloc", address, 1L << random.nextInt(9, 24), random.nextInt(3), random.nextInt(1, 9));
            live.put(address, block);
            liveBytes += block.byteSize();
            made.merge(key(block.stream(), block.frames()), block.byteSize(), Long::sum);
            if (liveBytes > peakBytes) {
                peakBytes = liveBytes;
                atPeak = new TreeMap<>(live);
            }
        }
    }

    private Event event(String action, long address, long byteSize, long stream, int line) {
        Event event = new Event(
                action,
                "PyTorch",
                address,
                byteSize,
                stream,
                1000L * events.size(),
                "",
                "",
                new Frames(line == 0 ? List.of() : List.of("step(train.py:" + line + ")")));
        events.add(event);
        return event;
    }

    private static String key(long stream, Frames frames) {
        return stream + " " + frames.all();
    }

    /// Returns the size of the block that stands for many, after an event.
    private static long drawnTogether(Shown shown, int index) {
        return shown.events().subList(0, index + 1).stream()
                .filter(event -> event.address() == ShownHistory.TOGETHER)
                .mapToLong(event -> event.action().equals("alloc") ? event.byteSize() : -event.byteSize())
                .sum();
    }

    /// Returns the blocks that are live after an event, without the one that stands for many.
    private static Map<Long, Event> liveAfter(Shown shown, int index) {
        Map<Long, Event> live = new TreeMap<>();
        for (Event event : shown.events().subList(0, index + 1)) {
            if (event.action().equals("alloc")) {
                live.put(event.address(), event);
            } else if (event.action().startsWith("free")) {
                live.remove(event.address());
            }
        }
        live.remove(ShownHistory.TOGETHER);
        return live;
    }
}
