package io.cistern.cli.report;

import com.fasterxml.jackson.core.JsonGenerator;
import io.cistern.cli.report.ShownHistory.Place;
import io.cistern.cli.report.ShownHistory.Shown;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.torch.TorchSnapshot.Annotation;
import io.cistern.cli.torch.TorchSnapshot.Block;
import io.cistern.cli.torch.TorchSnapshot.Event;
import io.cistern.cli.torch.TorchSnapshot.Frames;
import io.cistern.cli.torch.TorchSnapshot.Segment;
import io.cistern.cli.trace.CallStacks;
import java.io.IOException;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;

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

    private final JsonGenerator json;
    private final CallStacks stacks = new CallStacks();
    private final IdentityHashMap<Object, Integer> stackNumbers = new IdentityHashMap<>();

    private TorchJson(JsonGenerator json) {
        this.json = json;
    }

    /// @param reason what the snapshot shows
    /// @param fit how the program fits
    static void write(TorchSnapshot snapshot, String reason, ShownFit fit, JsonGenerator json) throws IOException {
        new TorchJson(json).write(snapshot, reason, fit);
    }

    private void write(TorchSnapshot snapshot, String reason, ShownFit fit) throws IOException {
        ShownHistory history = ShownHistory.of(snapshot);
        json.writeStartObject();
        json.writeStringField("reason", reason);
        if (!history.note().isEmpty()) {
            json.writeStringField("note", history.note());
        }
        if (!fit.facts().isEmpty()) {
            write(fit);
        }
        json.writeFieldName("leaks");
        ShownLeaks.write(fit.leaks(), json);
        json.writeObjectFieldStart("settings");
        for (Map.Entry<String, String> setting : snapshot.settings().entrySet()) {
            json.writeStringField(setting.getKey(), setting.getValue());
        }
        json.writeEndObject();
        json.writeArrayFieldStart("devices");
        for (int device : devices(snapshot)) {
            json.writeStartObject();
            json.writeNumberField("device", device);
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeArrayFieldStart("segments");
        for (Segment segment : snapshot.segments()) {
            write(segment);
        }
        json.writeEndArray();
        if (snapshot.eventCount() > 0) {
            writeHistory(snapshot, history);
        }
        json.writeArrayFieldStart("frames");
        for (String frame : stacks.frames()) {
            json.writeString(frame);
        }
        json.writeEndArray();
        json.writeArrayFieldStart("stacks");
        for (List<Integer> stack : stacks.stacks()) {
            json.writeArray(stack.stream().mapToInt(Integer::intValue).toArray(), 0, stack.size());
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private void write(ShownFit fit) throws IOException {
        json.writeObjectFieldStart("fit");
        json.writeArrayFieldStart("verdicts");
        for (String verdict : fit.verdicts()) {
            json.writeString(verdict);
        }
        json.writeEndArray();
        json.writeStringField("facts", fit.facts());
        json.writeEndObject();
    }

    private static Set<Integer> devices(TorchSnapshot snapshot) {
        Set<Integer> devices = new TreeSet<>();
        snapshot.segments().forEach(segment -> devices.add(segment.device()));
        IntStream.range(0, snapshot.traces().size())
                .filter(device -> !snapshot.traces().get(device).isEmpty())
                .forEach(devices::add);
        return devices;
    }

    private void write(Segment segment) throws IOException {
        json.writeStartObject();
        json.writeStringField("allocator", segment.pool());
        json.writeNumberField("device", segment.device());
        json.writeNumberField("address", segment.address());
        json.writeNumberField("byteSize", segment.byteSize());
        json.writeNumberField("stream", segment.stream());
        json.writeArrayFieldStart("blocks");
        for (Block block : segment.blocks()) {
            String state = block.isWaiting() ? "waiting" : block.isActive() ? "live" : "idle";
            json.writeStartObject();
            json.writeNumberField("address", block.address());
            json.writeNumberField("byteSize", block.byteSize());
            json.writeNumberField("requestedBytes", state.equals("idle") ? 0 : block.requestedBytes());
            json.writeStringField("state", state);
            writeStack(block.frames());
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private void writeHistory(TorchSnapshot snapshot, ShownHistory history) throws IOException {
        json.writeObjectFieldStart("history");
        json.writeNumberField("capacity", snapshot.eventCount());
        json.writeNumberField("lost", 0);
        json.writeArrayFieldStart("events");
        for (int device = 0; device < snapshot.traces().size(); device++) {
            writeEvents(device, history.traces().get(device));
        }
        for (Annotation annotation : snapshot.annotations()) {
            json.writeStartObject();
            json.writeStringField("event", "annotated");
            json.writeNumberField("nanos", annotation.nanos());
            json.writeStringField("text", annotation.text());
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeArrayFieldStart("together");
        for (int device = 0; device < snapshot.traces().size(); device++) {
            for (Map.Entry<Place, long[]> each :
                    history.traces().get(device).together().entrySet()) {
                writeTogether(device, each.getKey(), each.getValue());
            }
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private void writeTogether(int device, Place place, long[] counts) throws IOException {
        json.writeStartObject();
        json.writeNumberField("device", device);
        json.writeStringField("allocator", place.pool());
        json.writeNumberField("stream", place.stream());
        json.writeNumberField("freedOn", place.freedOn());
        writeThread("thread", place.thread());
        writeThread("freedBy", place.freedBy());
        json.writeNumberField("blocks", counts[0]);
        json.writeNumberField("byteSize", counts[1]);
        json.writeNumberField("lastNanos", counts[2]);
        writeStack(place.frames());
        json.writeEndObject();
    }

    private void writeThread(String name, String thread) throws IOException {
        if (!thread.isEmpty()) {
            json.writeStringField(name, thread);
        }
    }

    private void writeEvents(int device, Shown shown) throws IOException {
        List<Event> trace = shown.events();
        Set<Long> freedAtOnce = new HashSet<>();
        for (int i = 0; i < trace.size(); i++) {
            Event event = trace.get(i);
            switch (event.action()) {
                case "alloc" -> write("allocated", i == shown.peak(), device, event);
                case "free" -> write("freed", device, event);
                case "free_requested" -> {
                    write("freed", device, event);
                    if (TorchSnapshot.isFreedAtOnce(trace, i)) {
                        freedAtOnce.add(event.address());
                    } else {
                        write("freeDeferred", device, event);
                    }
                }
                case "free_completed" -> {
                    if (!freedAtOnce.remove(event.address())) {
                        write("freeCompleted", device, event);
                    }
                }
                case "segment_alloc", "segment_map" -> write("segmentAcquired", device, event);
                case "segment_free", "segment_unmap" -> write("segmentReleased", device, event);
                case "oom" -> write("outOfMemory", i == shown.refusedPeak(), device, event);
                default -> {} // A page shows nothing like it.
            }
        }
    }

    private void write(String name, int device, Event event) throws IOException {
        write(name, false, device, event);
    }

    private void write(String name, boolean isPeak, int device, Event event) throws IOException {
        json.writeStartObject();
        json.writeStringField("event", name);
        if (isPeak) {
            json.writeBooleanField("peak", true);
        }
        json.writeNumberField("nanos", event.nanos());
        writeThread("thread", event.thread());
        json.writeNumberField("device", device);
        json.writeStringField("allocator", event.pool());
        if (!event.action().equals("oom")) {
            json.writeNumberField("address", event.address());
            if (event.address() == ShownHistory.TOGETHER) {
                json.writeBooleanField("together", true);
            }
        }
        json.writeNumberField("byteSize", event.byteSize());
        if (event.stream() != TorchSnapshot.NO_STREAM) {
            json.writeNumberField("stream", event.stream());
        }
        if (!name.equals("freed")) { // Whose stack is that of its allocation.
            writeStack(event.frames());
        }
        json.writeEndObject();
    }

    private void writeStack(Frames frames) throws IOException {
        int number = stackNumbers.computeIfAbsent(frames, _ -> stacks.of(frames.lines(MAX_FRAMES)));
        if (number != CallStacks.NONE) {
            json.writeNumberField("callStack", number);
        }
    }
}
