package io.cistern.cli.imports;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.jr.ob.JSON;
import io.cistern.cli.common.InputException;
import io.cistern.cli.imports.ForeignEvent.Kind;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Recorder;
import io.cistern.cli.trace.Recording;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.function.Consumer;

/// Makes a log from a Cistern snapshot in JSON: allocations and frees, without their streams and threads. A block
/// counts as freed when the program frees it.
public final class SnapshotLog {
    private static final JsonFactory FACTORY = new JsonFactory();
    /// As browsers do, takes the last of several fields of a name.
    private static final JSON VALUES = JSON.std.without(JSON.Feature.FAIL_ON_DUPLICATE_MAP_KEYS);

    private final CallStacks stacks = new CallStacks();
    private final Map<Object, Integer> known = new HashMap<>();
    private final List<ForeignEvent> events = new ArrayList<>();
    private final List<ForeignEvent> alive = new ArrayList<>();
    /// By device, the addresses of blocks whose allocation was recorded, and not their free.
    private final Map<Integer, TreeSet<Long>> open = new HashMap<>();

    private List<String> frames = List.of();

    private interface Values {
        void read(JsonParser in) throws IOException;
    }

    private SnapshotLog() {}

    /// Returns the program that a snapshot's history records; empty if it has none, or more than a trace may have.
    ///
    /// @param json a snapshot that its schema allows
    public static Optional<Recording> recording(String json) throws IOException {
        SnapshotLog log = new SnapshotLog();
        read(json, "frames", in -> log.frames = VALUES.listOfFrom(String.class, in));
        read(json, "history", in -> read(in, "events", events -> each(events, log::event)));
        if (log.events.isEmpty()) {
            return Optional.empty();
        }
        log.events.sort(Comparator.comparingLong(ForeignEvent::nanos));
        log.findOpen();
        read(json, "segments", in -> each(in, log::segment));
        try {
            return Optional.of(ForeignTrace.recording(
                    "snapshot",
                    new ForeignLog(log.alive, log.events, List.of(), log.stacks, Recorder.named("Cistern"), null)));
        } catch (InputException tooMuch) {
            return Optional.empty();
        }
    }

    private static void read(String json, String field, Values values) throws IOException {
        try (JsonParser in = FACTORY.createParser(json)) {
            in.nextToken();
            read(in, field, values);
        }
    }

    /// Reads one field of the object in which a parser stands.
    private static void read(JsonParser in, String field, Values values) throws IOException {
        while (in.nextToken() == JsonToken.FIELD_NAME) {
            boolean isIt = in.currentName().equals(field);
            if (in.nextToken().isStructStart() && isIt) {
                values.read(in);
            } else {
                in.skipChildren();
            }
        }
    }

    private static void each(JsonParser in, Consumer<Map<String, Object>> objects) throws IOException {
        while (in.nextToken() != JsonToken.END_ARRAY) {
            objects.accept(VALUES.mapFrom(in));
        }
    }

    private void event(Map<String, Object> event) {
        boolean isMade = "allocated".equals(event.get("event"));
        if (!isMade && !"freed".equals(event.get("event"))) {
            return;
        }
        events.add(new ForeignEvent(
                isMade ? Kind.ALLOCATED : Kind.FREED,
                number(event, "address"),
                number(event, "byteSize"),
                0,
                (int) number(event, "device"),
                0,
                number(event, "nanos"),
                isMade ? stack(event) : CallStacks.NONE));
    }

    private void findOpen() {
        for (ForeignEvent event : events) {
            TreeSet<Long> addresses = open.computeIfAbsent(event.device(), _ -> new TreeSet<>());
            if (event.kind() == Kind.ALLOCATED) {
                addresses.add(event.address());
            } else {
                addresses.remove(event.address());
            }
        }
    }

    private void segment(Map<String, Object> segment) {
        int device = (int) number(segment, "device");
        TreeSet<Long> addresses = open.getOrDefault(device, new TreeSet<>());
        for (Object each : segment.get("blocks") instanceof List<?> blocks ? blocks : List.of()) {
            Map<?, ?> block = (Map<?, ?>) each;
            long address = number(block, "address");
            // The program's address may lie a little behind where the block begins, as with guards around it.
            Long next = addresses.ceiling(address);
            boolean isRecorded = next != null && next - address < Math.max(1, number(block, "byteSize"));
            if ("live".equals(block.get("state")) && !isRecorded) {
                long requested = number(block, "requestedBytes");
                alive.add(new ForeignEvent(
                        Kind.ALLOCATED,
                        address,
                        requested > 0 ? requested : number(block, "byteSize"),
                        0,
                        device,
                        0,
                        0,
                        stack(block)));
            }
        }
    }

    private int stack(Map<?, ?> block) {
        return block.get("frames") instanceof List<?> numbers
                ? known.computeIfAbsent(
                        numbers,
                        _ -> stacks.of(numbers.stream()
                                .map(number -> frame((Number) number))
                                .toList()))
                : CallStacks.NONE;
    }

    private String frame(Number number) {
        int index = number.intValue();
        return index >= 0 && index < frames.size() ? frames.get(index) : "?";
    }

    private static long number(Map<?, ?> fields, String name) {
        return fields.get(name) instanceof Number number ? number.longValue() : 0;
    }
}
