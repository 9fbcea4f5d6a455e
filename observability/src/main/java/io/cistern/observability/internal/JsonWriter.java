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
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;

/// Writes a snapshot as JSON in the form that `snapshot.schema.json` describes. Unknown values are left out;
/// a missing stream of a segment, pool, history or refusal is null. Frames are kept in one table, because
/// many blocks share them.
///
/// **Threads.** Belongs to one thread.
public final class JsonWriter {
    static final int VERSION = 1;

    private final JsonGenerator json;

    /// The index of each frame in the table.
    private final Map<String, Integer> frames = new HashMap<>();

    private final List<String> frameTable = new ArrayList<>();

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
        writeRuntime(snapshot);
        json.writeObjectFieldStart("settings");
        for (Map.Entry<String, String> setting : snapshot.settings().entrySet()) {
            json.writeStringField(setting.getKey(), setting.getValue());
        }
        json.writeEndObject();
        writeAll("devices", snapshot.devices(), this::writeDevice);
        writeAll("allocators", snapshot.allocators(), this::writeFigures);
        writeAll("segments", snapshot.segments(), this::writeSegment);
        if (snapshot.history().isPresent()) {
            json.writeFieldName("history");
            writeHistory(snapshot.history().get());
        } else {
            json.writeNullField("history");
        }
        if (snapshot.outOfMemory().isPresent()) {
            json.writeFieldName("outOfMemory");
            writeReport(snapshot.outOfMemory().get());
        } else {
            json.writeNullField("outOfMemory");
        }
        writeAll("frames", frameTable, json::writeString); // last, when all frames are known
        json.writeEndObject();
    }

    private void writeRuntime(MemorySnapshot snapshot) throws IOException {
        json.writeObjectFieldStart("runtime");
        json.writeStringField("java", Runtime.version().toString());
        json.writeNumberField("processId", ProcessHandle.current().pid());
        json.writeStringField("driver", snapshot.driver());
        json.writeEndObject();
    }

    private interface Part<T> {
        void write(T part) throws IOException;
    }

    private <T> void writeAll(String name, List<T> parts, Part<T> each) throws IOException {
        json.writeArrayFieldStart(name);
        for (T part : parts) {
            each.write(part);
        }
        json.writeEndArray();
    }

    private void writeDevice(Device device) throws IOException {
        json.writeStartObject();
        json.writeNumberField("device", device.ordinal());
        json.writeStringField("name", device.name());
        json.writeNumberField("totalBytes", device.totalBytes());
        json.writeNumberField("freeBytes", device.freeBytes());
        json.writeEndObject();
    }

    private void writeFigures(AllocatorFigures allocator) throws IOException {
        json.writeStartObject();
        json.writeStringField("name", allocator.name());
        json.writeStringField("pool", allocator.pool().orElse(null));
        json.writeNumberField("device", allocator.device());
        json.writeBooleanField("current", allocator.current());
        json.writeObjectFieldStart("figures");
        for (Map.Entry<String, Long> figure : allocator.figures().entrySet()) {
            json.writeNumberField(figure.getKey(), figure.getValue());
        }
        json.writeEndObject();
        json.writeEndObject();
    }

    private void writeSegment(Segment segment) throws IOException {
        json.writeStartObject();
        json.writeStringField("allocator", segment.allocator());
        json.writeNumberField("device", segment.device());
        json.writeNumberField("address", segment.address());
        json.writeNumberField("byteSize", segment.byteSize());
        if (segment.stream().isPresent()) {
            json.writeNumberField("stream", segment.stream().getAsLong());
        } else {
            json.writeNullField("stream");
        }
        json.writeBooleanField("expandable", segment.expandable());
        json.writeBooleanField("reported", segment.reported());
        writeAll("blocks", segment.blocks(), this::writeBlock);
        json.writeEndObject();
    }

    private void writeBlock(Block block) throws IOException {
        json.writeStartObject();
        json.writeNumberField("address", block.address());
        json.writeNumberField("byteSize", block.byteSize());
        json.writeNumberField("requestedBytes", block.requestedBytes());
        json.writeStringField("state", block.state().name().toLowerCase(Locale.ROOT));
        writeIfKnown("stream", block.stream());
        if (block.thread().isPresent()) {
            json.writeStringField("thread", block.thread().get());
        }
        if (block.scope().isPresent()) {
            json.writeStringField("scope", block.scope().get());
        }
        writeIfKnown("ageNanos", block.ageNanos());
        if (block.graph().isPresent()) {
            json.writeStringField("graph", block.graph().get());
        }
        writeFrames(block.site());
        json.writeEndObject();
    }

    private void writeHistory(History history) throws IOException {
        json.writeStartObject();
        json.writeStringField("startedAt", history.startedAt().toString());
        json.writeNumberField("capacity", history.options().capacity());
        json.writeBooleanField("stacks", history.options().stacks());
        json.writeNumberField("lost", history.lost());
        writeAll("events", history.entries(), entry -> writeEvent(entry, history.startNanos()));
        json.writeEndObject();
    }

    private void writeEvent(HistoryEntry entry, long startNanos) throws IOException {
        json.writeStartObject();
        json.writeNumberField("nanos", entry.nanos() - startNanos);
        json.writeStringField("thread", entry.thread());
        if (!entry.text().isEmpty()) {
            json.writeStringField("text", entry.text());
        }
        for (Map.Entry<String, Object> field : EventFields.of(entry.event()).entrySet()) {
            json.writeFieldName(field.getKey());
            switch (field.getValue()) {
                case String text -> json.writeString(text);
                case Boolean flag -> json.writeBoolean(flag);
                default -> json.writeNumber(((Number) field.getValue()).longValue());
            }
        }
        writeFrames(entry.site());
        json.writeEndObject();
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
        Integer known = frames.get(frame);
        if (known != null) {
            return known;
        }
        frames.put(frame, frameTable.size());
        frameTable.add(frame);
        return frameTable.size() - 1;
    }

    private void writeReport(OutOfMemoryReport report) throws IOException {
        json.writeStartObject();
        json.writeNumberField("device", report.device());
        json.writeNumberField("byteSize", report.byteSize());
        json.writeNumberField("stream", report.stream());
        writeIfKnown("freeBytes", report.freeBytes());
        writeIfKnown("totalBytes", report.totalBytes());
        json.writeStringField("text", report.text());
        writeAll("steps", report.steps(), this::writeStep);
        writeAll("unusable", report.unusable(), this::writeUnusable);
        writeAll("advice", report.advice(), json::writeString);
        writeAll("allocators", report.allocators(), this::writeMemory);
        writeAll("processes", report.processes(), this::writeProcess);
        json.writeEndObject();
    }

    private void writeStep(TriedStep step) throws IOException {
        json.writeStartObject();
        json.writeStringField("step", step.step().text());
        json.writeNumberField("byteSize", step.byteSize());
        json.writeNumberField("nanos", step.nanos());
        json.writeEndObject();
    }

    private void writeUnusable(UnusableMemory memory) throws IOException {
        json.writeStartObject();
        json.writeStringField("reason", memory.reason().text());
        json.writeNumberField("byteSize", memory.byteSize());
        json.writeStringField("holder", memory.holder());
        json.writeStringField("remedy", memory.remedy());
        json.writeEndObject();
    }

    private void writeMemory(OutOfMemoryReport.AllocatorMemory memory) throws IOException {
        json.writeStartObject();
        json.writeStringField("name", memory.name());
        json.writeStringField("pool", memory.tag());
        writeIfKnown("reservedBytes", memory.reservedBytes());
        json.writeNumberField("requestedBytes", memory.requestedBytes());
        json.writeNumberField("liveBlocks", memory.liveBlocks());
        writeIfKnown("largestFreeBytes", memory.largestFreeBytes());
        writeAll("streams", memory.streams(), this::writeStream);
        json.writeEndObject();
    }

    private void writeStream(StreamMemory stream) throws IOException {
        json.writeStartObject();
        json.writeNumberField("stream", stream.stream());
        json.writeNumberField("liveBytes", stream.liveBytes());
        json.writeNumberField("largestFreeBytes", stream.largestFreeBytes());
        json.writeEndObject();
    }

    private void writeProcess(OutOfMemoryReport.ProcessMemory process) throws IOException {
        json.writeStartObject();
        json.writeNumberField("processId", process.processId());
        writeIfKnown("byteSize", process.byteSize());
        json.writeEndObject();
    }

    private void writeIfKnown(String name, OptionalLong figure) throws IOException {
        if (figure.isPresent()) {
            json.writeNumberField(name, figure.getAsLong());
        }
    }
}
