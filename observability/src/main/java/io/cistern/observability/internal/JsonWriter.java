package io.cistern.observability.internal;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.StreamWriteFeature;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.diagnostics.TriedStep;
import io.cistern.diagnostics.UnusableMemory;
import io.cistern.observability.HistoryEntry;
import io.cistern.observability.MemorySnapshot;
import io.cistern.observability.MemorySnapshot.AllocatorFigures;
import io.cistern.observability.MemorySnapshot.Block;
import io.cistern.observability.MemorySnapshot.Device;
import io.cistern.observability.MemorySnapshot.History;
import io.cistern.observability.MemorySnapshot.Segment;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/// Writes a snapshot as JSON in the form that `snapshot.schema.json` describes. Unknown values are left out;
/// a missing stream of a segment, pool, history or refusal is null. Frames are kept in one table, because
/// many blocks share them.
///
/// **Threads.** Not thread-safe.
public final class JsonWriter {
    static final int VERSION = 1;

    private final JsonGenerator json;

    /// The index of each frame in the table, by their order.
    private final Map<String, Integer> frames = new LinkedHashMap<>();

    private JsonWriter(JsonGenerator json) {
        this.json = json;
    }

    /// Writes a snapshot.
    ///
    /// @param out the stream to write to; it stays open
    public static void write(MemorySnapshot snapshot, OutputStream out) throws IOException {
        JsonFactory factory = JsonFactory.builder()
                .disable(StreamWriteFeature.AUTO_CLOSE_TARGET)
                .build();
        try (JsonGenerator json = factory.createGenerator(out)) {
            new JsonWriter(json).write(snapshot);
        }
    }

    private void write(MemorySnapshot snapshot) throws IOException {
        json.writeStartObject();
        json.writeStringField("format", "cistern-snapshot");
        json.writeNumberField("version", VERSION);
        json.writeStringField("takenAt", snapshot.takenAt().toString());
        json.writeStringField("reason", snapshot.reason());
        json.writeObjectFieldStart("runtime");
        json.writeStringField("java", Runtime.version().toString());
        json.writeNumberField("processId", ProcessHandle.current().pid());
        json.writeStringField("driver", snapshot.driver());
        json.writeEndObject();
        writeMap("settings", snapshot.settings());
        writeAll("devices", snapshot.devices(), this::writeDevice);
        writeAll("allocators", snapshot.allocators(), this::writeFigures);
        writeAll("segments", snapshot.segments(), this::writeSegment);
        writeOrNull("history", snapshot.history(), this::writeHistory);
        writeOrNull("outOfMemory", snapshot.outOfMemory(), this::writeReport);
        writeTexts("frames", frames.keySet()); // last, when all frames are known
        json.writeEndObject();
    }

    private interface Part<T> {
        void write(T part) throws IOException;
    }

    /// Writes an object for each part.
    private <T> void writeAll(String name, List<T> parts, Part<T> fields) throws IOException {
        json.writeArrayFieldStart(name);
        for (T part : parts) {
            writeObject(part, fields);
        }
        json.writeEndArray();
    }

    private <T> void writeObject(T part, Part<T> fields) throws IOException {
        json.writeStartObject();
        fields.write(part);
        json.writeEndObject();
    }

    private void writeTexts(String name, Collection<String> texts) throws IOException {
        json.writeArrayFieldStart(name);
        for (String text : texts) {
            json.writeString(text);
        }
        json.writeEndArray();
    }

    private void writeDevice(Device device) throws IOException {
        json.writeNumberField("device", device.ordinal());
        json.writeStringField("name", device.name());
        json.writeNumberField("totalBytes", device.totalBytes());
        json.writeNumberField("freeBytes", device.freeBytes());
    }

    private void writeFigures(AllocatorFigures allocator) throws IOException {
        json.writeStringField("name", allocator.name());
        json.writeStringField("pool", allocator.pool().orElse(null));
        json.writeNumberField("device", allocator.device());
        json.writeBooleanField("current", allocator.current());
        writeMap("figures", allocator.figures());
    }

    private void writeSegment(Segment segment) throws IOException {
        json.writeStringField("allocator", segment.allocator());
        json.writeNumberField("device", segment.device());
        json.writeNumberField("address", segment.address());
        json.writeNumberField("byteSize", segment.byteSize());
        json.writePOJOField(
                "stream", segment.stream().isPresent() ? segment.stream().getAsLong() : null);
        json.writeBooleanField("expandable", segment.expandable());
        json.writeBooleanField("reported", segment.reported());
        writeAll("blocks", segment.blocks(), this::writeBlock);
    }

    private void writeBlock(Block block) throws IOException {
        json.writeNumberField("address", block.address());
        json.writeNumberField("byteSize", block.byteSize());
        json.writeNumberField("requestedBytes", block.requestedBytes());
        json.writeStringField("state", block.state().name().toLowerCase(Locale.ROOT));
        writeIfKnown("stream", block.stream());
        writeIfKnown("thread", block.thread());
        writeIfKnown("scope", block.scope());
        writeIfKnown("ageNanos", block.ageNanos());
        writeIfKnown("graph", block.graph());
        writeFrames(block.site());
    }

    private void writeHistory(History history) throws IOException {
        json.writeStringField("startedAt", history.startedAt().toString());
        json.writeNumberField("capacity", history.options().capacity());
        json.writeBooleanField("stacks", history.options().stacks());
        json.writeNumberField("lost", history.lost());
        writeAll("events", history.entries(), entry -> writeEvent(entry, history.startNanos()));
    }

    private void writeEvent(HistoryEntry entry, long startNanos) throws IOException {
        json.writeNumberField("nanos", entry.nanos() - startNanos);
        json.writeStringField("thread", entry.thread());
        if (!entry.text().isEmpty()) {
            json.writeStringField("text", entry.text());
        }
        writeFields(EventFields.of(entry.event()));
        writeFrames(entry.site());
    }

    private void writeFrames(List<StackTraceElement> site) throws IOException {
        if (site.isEmpty()) {
            return;
        }
        json.writeArrayFieldStart("frames");
        for (StackTraceElement frame : site) {
            json.writeNumber(index(text(frame)));
        }
        json.writeEndArray();
    }

    /// Returns a frame without the names of class loader and module, which appear in no source.
    private static String text(StackTraceElement frame) {
        String where = frame.getFileName() == null
                ? "unknown source"
                : frame.getFileName() + (frame.getLineNumber() < 0 ? "" : ":" + frame.getLineNumber());
        return frame.getClassName() + "." + frame.getMethodName() + "(" + where + ")";
    }

    private int index(String frame) {
        return frames.computeIfAbsent(frame, _ -> frames.size());
    }

    private void writeReport(OutOfMemoryReport report) throws IOException {
        json.writeNumberField("device", report.device());
        json.writeNumberField("byteSize", report.byteSize());
        json.writeNumberField("stream", report.stream());
        writeIfKnown("freeBytes", report.freeBytes());
        writeIfKnown("totalBytes", report.totalBytes());
        json.writeStringField("text", report.text());
        writeAll("steps", report.steps(), this::writeStep);
        writeAll("unusable", report.unusable(), this::writeUnusable);
        writeTexts("advice", report.advice());
        writeAll("allocators", report.allocators(), this::writeMemory);
        writeAll("processes", report.processes(), this::writeProcess);
    }

    private void writeStep(TriedStep step) throws IOException {
        json.writeStringField("step", step.step().text());
        json.writeNumberField("byteSize", step.byteSize());
        json.writeNumberField("nanos", step.nanos());
    }

    private void writeUnusable(UnusableMemory memory) throws IOException {
        json.writeStringField("reason", memory.reason().text());
        json.writeNumberField("byteSize", memory.byteSize());
        json.writeStringField("holder", memory.holder());
        json.writeStringField("remedy", memory.remedy());
    }

    private void writeMemory(OutOfMemoryReport.AllocatorMemory memory) throws IOException {
        json.writeStringField("name", memory.name());
        json.writeStringField("pool", memory.tag());
        writeIfKnown("reservedBytes", memory.reservedBytes());
        json.writeNumberField("requestedBytes", memory.requestedBytes());
        json.writeNumberField("liveBlocks", memory.liveBlocks());
        writeIfKnown("largestFreeBytes", memory.largestFreeBytes());
        writeAll("streams", memory.streams(), this::writeStream);
    }

    private void writeStream(StreamMemory stream) throws IOException {
        json.writeNumberField("stream", stream.stream());
        json.writeNumberField("liveBytes", stream.liveBytes());
        json.writeNumberField("largestFreeBytes", stream.largestFreeBytes());
    }

    private void writeProcess(OutOfMemoryReport.ProcessMemory process) throws IOException {
        json.writeNumberField("processId", process.processId());
        writeIfKnown("byteSize", process.byteSize());
    }

    private void writeIfKnown(String name, OptionalLong figure) throws IOException {
        if (figure.isPresent()) {
            json.writeNumberField(name, figure.getAsLong());
        }
    }

    private void writeIfKnown(String name, Optional<String> text) throws IOException {
        if (text.isPresent()) {
            json.writeStringField(name, text.get());
        }
    }

    private <T> void writeOrNull(String name, Optional<T> part, Part<T> fields) throws IOException {
        json.writeFieldName(name);
        if (part.isPresent()) {
            writeObject(part.get(), fields);
        } else {
            json.writeNull();
        }
    }

    private void writeMap(String name, Map<String, ?> fields) throws IOException {
        json.writeObjectFieldStart(name);
        writeFields(fields);
        json.writeEndObject();
    }

    /// @param fields strings, numbers and booleans
    private void writeFields(Map<String, ?> fields) throws IOException {
        for (Map.Entry<String, ?> field : fields.entrySet()) {
            json.writePOJOField(field.getKey(), field.getValue());
        }
    }
}
