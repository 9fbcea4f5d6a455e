package io.cistern.cli.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import io.cistern.cli.common.InputException;
import io.cistern.cli.torch.TorchSnapshot.Block;
import io.cistern.cli.torch.TorchSnapshot.Event;
import io.cistern.cli.torch.TorchSnapshot.Segment;
import java.io.ByteArrayInputStream;
import java.math.BigInteger;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.razorvine.pickle.Pickler;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What snapshots hold came and went with PyTorch's versions.
class TorchSnapshotTests {
    private static final long BASE = 0x7f00_0000_0000L;
    private static final int MIB = 1 << 20;

    private enum Version {
        V2_0,
        V2_1,
        V2_2,
        V2_7,
        V2_11;

        boolean has(Version since) {
            return compareTo(since) >= 0;
        }
    }

    @ParameterizedTest
    @EnumSource
    void eachVersionSaysWhoHoldsWhat(Version version) throws Exception {
        TorchSnapshot snapshot = read(version);

        Segment segment = snapshot.segments().getFirst();
        assertThat(segment.byteSize()).isEqualTo(20 * MIB);
        assertThat(segment.blocks())
                .extracting(
                        Block::address,
                        Block::byteSize,
                        Block::requestedBytes,
                        Block::isActive,
                        block -> block.frames().lines(9))
                .containsExactly(
                        tuple(BASE, 4L * MIB, 4L * MIB - 7, true, List.of("step(train.py:12)")),
                        tuple(BASE + 4 * MIB, 16L * MIB, version.has(Version.V2_1) ? 0L : 16L * MIB, false, List.of()));
    }

    @ParameterizedTest
    @EnumSource
    void eachVersionSaysWhatHappened(Version version) throws Exception {
        List<Event> events = read(version).traces().get(1);

        assertThat(events)
                .extracting(
                        Event::action,
                        Event::address,
                        Event::byteSize,
                        event -> event.frames().lines(9))
                .containsExactly(
                        tuple("segment_alloc", BASE, 20L * MIB, List.of()),
                        tuple("alloc", BASE, 4L * MIB - 7, List.of("step(train.py:12)")),
                        tuple("oom", 3L * MIB, 64L * MIB, List.of("step(train.py:12)")),
                        tuple("snapshot", 0L, 0L, List.of()));
        assertThat(events.getLast().nanos()).isEqualTo(version.has(Version.V2_2) ? 3000 : 0);
    }

    /// A compiled program's snapshot has one of 64 bits without a sign.
    @ParameterizedTest
    @ValueSource(ints = {63, 64, 127, 1023})
    void numbersOfAnySizeMayStandWhereTheyDoNotMatter(int bits) throws Exception {
        Map<String, Object> event = event(Version.V2_11, 0, "alloc", BASE, MIB, null);
        event.put("compile_context", BigInteger.TWO.pow(bits));
        event.put("user_metadata", BigInteger.TWO.pow(bits).negate());
        assertThat(read(Map.of("segments", List.of(), "device_traces", List.of(List.of(event))))
                        .traces()
                        .getFirst())
                .extracting(Event::address)
                .containsExactly(BASE);
    }

    @Test
    void anAddressOfMoreThan64BitsIsRefused() {
        Map<String, Object> event = event(Version.V2_11, 0, "alloc", BASE, MIB, null);
        event.put("addr", BigInteger.TWO.pow(64));
        assertThatThrownBy(() -> read(Map.of("segments", List.of(), "device_traces", List.of(List.of(event)))))
                .isInstanceOf(InputException.class)
                .hasMessageContaining("'addr'");
    }

    @Test
    void longNamesAndNotesAreCut() throws Exception {
        String longText = "x".repeat(MIB - 100);
        String pairs = "\ud83d\ude00".repeat(1000);
        Map<String, Object> event = event(
                Version.V2_11,
                0,
                "alloc",
                BASE,
                MIB,
                List.of(
                        Map.of("name", "step", "filename", "/" + longText + "/train.py", "line", 12),
                        Map.of("name", longText, "filename", "train.py", "line", 13),
                        Map.of("name", "a" + pairs, "filename", pairs + "a", "line", 14),
                        longText));
        event.put("user_metadata", longText);
        event.put("category", longText);
        TorchSnapshot snapshot = read(Map.of(
                "segments",
                List.of(),
                "device_traces",
                List.of(List.of(event, event)),
                "external_annotations",
                List.of(Map.of("device", 0, "time_us", 1_700_000_000_000_000L, "name", longText, "stage", "END"))));

        String cut = "x".repeat(1000) + "…";
        List<Event> events = snapshot.traces().getFirst();
        assertThat(events.getFirst().frames().all())
                .containsExactly(
                        "step(…" + "x".repeat(991) + "/train.py:12)",
                        cut + "(train.py:13)",
                        "a" + pairs.substring(0, 998) + "…(…" + pairs.substring(0, 998) + "a:14)",
                        cut);
        assertThat(events).extracting(Event::thread, Event::category).containsOnly(tuple(cut, cut));
        assertThat(events.getFirst().thread()).isSameAs(events.getLast().thread());
        assertThat(snapshot.annotations())
                .extracting(TorchSnapshot.Annotation::text)
                .containsExactly(cut + " ends");
    }

    private static TorchSnapshot read(Version version) throws Exception {
        Map<String, @Nullable Object> frame = new HashMap<>(Map.of("name", "step", "filename", "train.py", "line", 12));
        if (version.has(Version.V2_11)) {
            frame.put("fx_node_op", "call_function");
            frame.put("fx_original_trace", null);
        }
        List<Object> frames = List.of(frame);
        Map<String, Object> snapshot = new HashMap<>();
        snapshot.put("segments", List.of(segment(version, frames)));
        snapshot.put(
                "device_traces",
                List.of(
                        List.of(),
                        List.of(
                                event(version, 0, "segment_alloc", BASE, 20 * MIB, null),
                                event(version, 1, "alloc", BASE, 4 * MIB - 7, frames),
                                event(version, 2, "oom", 3 * MIB, 64 * MIB, frames),
                                event(version, 3, "snapshot", 0, 0, null))));
        if (version.has(Version.V2_1)) {
            snapshot.put(
                    "allocator_settings", Map.of("roundup_power2_divisions", Map.of("1", 0), "max_split_size", -1));
        }
        if (version.has(Version.V2_7)) {
            snapshot.put("external_annotations", List.of());
        }
        return read(snapshot);
    }

    private static TorchSnapshot read(Map<String, Object> snapshot) throws Exception {
        return TorchSnapshot.read("x.pickle", new ByteArrayInputStream(new Pickler().dumps(snapshot)));
    }

    private static Map<String, Object> event(
            Version version, int micros, String action, long address, int byteSize, @Nullable List<Object> frames) {
        Map<String, Object> event = new HashMap<>();
        event.put("action", action);
        event.put(action.equals("oom") ? "device_free" : "addr", address);
        event.put("size", byteSize);
        event.put("stream", 0);
        if (frames != null) {
            event.put("frames", frames);
        }
        if (version.has(Version.V2_2)) {
            event.put("time_us", 1_700_000_000_000_000L + micros);
        }
        if (version.has(Version.V2_7)) {
            event.put("compile_context", "N/A");
            event.put("user_metadata", "");
        }
        if (version.has(Version.V2_11)) {
            event.put("pool_id", List.of(0, 0).toArray());
        }
        return event;
    }

    /// Before 2.1 blocks had no address, and their frames lay in a history.
    private static Map<String, Object> segment(Version version, List<Object> frames) {
        Map<String, Object> taken =
                new HashMap<>(Map.of("size", 4 * MIB, "requested_size", 4 * MIB - 7, "state", "active_allocated"));
        Map<String, Object> free = new HashMap<>(Map.of("size", 16 * MIB, "state", "inactive"));
        if (version.has(Version.V2_1)) {
            taken.putAll(Map.of("address", BASE, "frames", frames));
            free.putAll(Map.of("address", BASE + 4 * MIB, "requested_size", 0, "frames", List.of()));
        } else {
            taken.put("history", List.of(Map.of("addr", BASE, "real_size", 4 * MIB - 7, "frames", frames)));
        }
        return Map.of(
                "device", 1, "address", BASE, "total_size", 20 * MIB, "stream", 0, "blocks", List.of(taken, free));
    }
}
