package io.cistern.cli.imports;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.jr.ob.JSON;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import io.cistern.cli.torch.TorchSnapshot.Block;
import io.cistern.cli.torch.TorchSnapshot.Segment;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Recorder;
import io.cistern.cli.trace.Recorder.Mark;
import io.cistern.cli.trace.Recorder.Refused;
import io.cistern.cli.trace.Recorder.Reserved;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;

/// The contents of a recording besides its rows: a JSON file beside the trace, as in `docs/trace-format.md`.
///
/// @param callStacks the stacks that the trace's last column numbers
/// @param recorder what is known of the allocator that served the program
record RecordingDetails(CallStacks callStacks, Recorder recorder) {
    /// Those of a trace without a file beside it.
    static final RecordingDetails NONE = new RecordingDetails(new CallStacks(), Recorder.UNKNOWN);

    private static final String GZIP = ".gz";

    /// Returns the file for the details of a trace: `run.details.json.gz` for `run.csv.gz`.
    static Path beside(Path trace) {
        String name = String.valueOf(trace.getFileName());
        boolean packed = name.toLowerCase(Locale.ROOT).endsWith(GZIP);
        String bare = packed ? name.substring(0, name.length() - GZIP.length()) : name;
        return trace.resolveSibling(bare.replaceFirst("(?i)\\.csv$", "") + ".details.json" + (packed ? GZIP : ""));
    }

    /// Returns whether a log has details at all.
    static boolean has(ForeignLog log) {
        return log.callStacks().stacks().size() > 1
                || !log.recorder().reserved().isEmpty();
    }

    /// Writes the details of a log.
    ///
    /// @param olderBlocks blocks that were live before the log began
    static void write(ForeignLog log, long olderBlocks, Path file) throws IOException {
        try (OutputStream bytes = Files.newOutputStream(file);
                OutputStream out = file.toString().endsWith(GZIP) ? new GZIPOutputStream(bytes) : bytes;
                JsonGenerator json = new JsonFactory().createGenerator(out)) {
            json.writeStartObject();
            json.writeStringField("recorder", log.recorder().name());
            json.writeNumberField("olderBlocks", olderBlocks);
            json.writeObjectFieldStart("settings");
            for (Map.Entry<String, String> setting : log.recorder().settings().entrySet()) {
                json.writeStringField(setting.getKey(), setting.getValue());
            }
            json.writeEndObject();
            writeMoments(log, json);
            json.writeArrayFieldStart("frames");
            for (String frame : log.callStacks().frames()) {
                json.writeString(frame);
            }
            json.writeEndArray();
            json.writeArrayFieldStart("stacks");
            for (List<Integer> stack : log.callStacks().stacks()) {
                json.writeArray(stack.stream().mapToInt(Integer::intValue).toArray(), 0, stack.size());
            }
            json.writeEndArray();
            json.writeArrayFieldStart("segments");
            for (Segment segment : log.segments()) {
                write(segment, json);
            }
            json.writeEndArray();
            json.writeEndObject();
        }
    }

    private static void writeMoments(ForeignLog log, JsonGenerator json) throws IOException {
        json.writeArrayFieldStart("marks");
        for (Mark mark : log.recorder().marks()) {
            json.writeStartObject();
            json.writeNumberField("nanos", mark.nanos());
            json.writeStringField("text", mark.text());
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeArrayFieldStart("reserved");
        for (Reserved reserved : log.recorder().reserved()) {
            json.writeStartObject();
            json.writeNumberField("nanos", reserved.nanos());
            json.writeNumberField("device", reserved.device());
            json.writeNumberField("byteSize", reserved.byteSize());
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeArrayFieldStart("refused");
        for (Refused refused : log.recorder().refused()) {
            json.writeStartObject();
            json.writeNumberField("freeBytes", refused.freeBytes());
            json.writeNumberField("reservedBytes", refused.reservedBytes());
            json.writeEndObject();
        }
        json.writeEndArray();
    }

    private static void write(Segment segment, JsonGenerator json) throws IOException {
        json.writeStartObject();
        json.writeStringField("allocator", segment.pool());
        json.writeNumberField("device", segment.device());
        json.writeNumberField("address", segment.address());
        json.writeNumberField("byteSize", segment.byteSize());
        json.writeNumberField("stream", segment.stream());
        json.writeArrayFieldStart("blocks");
        for (Block block : segment.blocks()) {
            json.writeStartObject();
            json.writeNumberField("address", block.address());
            json.writeNumberField("byteSize", block.byteSize());
            json.writeNumberField("requestedBytes", block.requestedBytes());
            json.writeStringField("state", block.state());
            json.writeEndObject();
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    /// Reads the details of a trace, as far as a replay needs them.
    ///
    /// @throws InputException if the file can't be read or is damaged
    static RecordingDetails read(Path file) throws InputException {
        return InputFile.read(file, (name, in) -> {
            try {
                return of(JSON.std.mapFrom(in));
            } catch (JsonProcessingException broken) {
                throw new InputException(name, "is not JSON: " + broken.getOriginalMessage());
            } catch (IllegalArgumentException impossible) {
                throw new InputException(name, "does not contain the details of a trace: " + impossible.getMessage());
            }
        });
    }

    private static RecordingDetails of(Map<String, Object> fields) {
        List<String> frames = new ArrayList<>();
        list(fields, "frames").forEach(frame -> frames.add(InputException.oneLine(String.valueOf(frame))));
        CallStacks stacks = new CallStacks();
        List<?> numbered = list(fields, "stacks");
        for (int stack = 0; stack < numbered.size(); stack++) {
            List<String> lines = new ArrayList<>();
            for (Object frame : elements(numbered.get(stack), "stacks")) {
                lines.add(frames.get((int) number(frame, "stacks", frames.size() - 1L)));
            }
            if (stacks.of(lines) != stack) {
                throw new IllegalArgumentException("'stacks' has a duplicate, or does not begin with the empty one");
            }
        }
        List<Mark> marks = new ArrayList<>();
        for (Object mark : list(fields, "marks")) {
            marks.add(
                    new Mark(number(mark, "nanos"), String.valueOf(object(mark).get("text"))));
        }
        List<Reserved> reserved = new ArrayList<>();
        for (Object each : list(fields, "reserved")) {
            reserved.add(new Reserved(number(each, "nanos"), number(each, "device"), number(each, "byteSize")));
        }
        List<Refused> refused = new ArrayList<>();
        for (Object each : list(fields, "refused")) {
            refused.add(new Refused(orUnknown(each, "freeBytes"), orUnknown(each, "reservedBytes")));
        }
        Map<String, String> settings = new LinkedHashMap<>();
        object(fields.getOrDefault("settings", Map.of()))
                .forEach((key, value) -> settings.put(
                        InputException.oneLine(String.valueOf(key)), InputException.oneLine(String.valueOf(value))));
        return new RecordingDetails(
                stacks,
                new Recorder(
                        InputException.oneLine(String.valueOf(fields.get("recorder"))),
                        number(fields, "olderBlocks"),
                        reserved,
                        refused,
                        marks,
                        settings));
    }

    private static List<?> list(Map<?, ?> fields, String name) {
        return elements(fields.get(name), name);
    }

    private static List<?> elements(@Nullable Object value, String name) {
        if (value instanceof List<?> list) {
            return list;
        }
        throw new IllegalArgumentException("'" + name + "' is not a list");
    }

    private static Map<?, ?> object(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map;
        }
        throw new IllegalArgumentException("'" + value + "' is not an object");
    }

    private static long number(Object object, String name) {
        return number(object(object).get(name), name, Long.MAX_VALUE);
    }

    private static long number(@Nullable Object value, String name, long most) {
        Long number = asLong(value);
        if (number == null || number < 0 || number > most) {
            throw new IllegalArgumentException("'" + name + "' has an impossible number: " + value);
        }
        return number;
    }

    private static long orUnknown(Object object, String name) {
        return Long.valueOf(-1).equals(asLong(object(object).get(name))) ? -1 : number(object, name);
    }

    private static @Nullable Long asLong(@Nullable Object value) {
        return value instanceof Integer || value instanceof Long ? ((Number) value).longValue() : null;
    }
}
