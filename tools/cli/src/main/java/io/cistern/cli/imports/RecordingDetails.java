package io.cistern.cli.imports;

import static io.cistern.cli.common.ResultWriter.array;
import static io.cistern.cli.common.ResultWriter.object;

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

    static boolean has(ForeignLog log) {
        return log.callStacks().stacks().size() > 1
                || !log.recorder().reserved().isEmpty();
    }

    /// Writes the details of a log.
    ///
    /// @param olderBlocks blocks that were live before the log began
    static void write(ForeignLog log, long olderBlocks, Path file) throws IOException {
        Recorder recorder = log.recorder();
        try (OutputStream bytes = Files.newOutputStream(file);
                OutputStream out = file.toString().endsWith(GZIP) ? new GZIPOutputStream(bytes) : bytes) {
            JSON.std.write(
                    object(
                            "recorder", recorder.name(),
                            "olderBlocks", olderBlocks,
                            "settings", recorder.settings(),
                            "marks", array(recorder.marks(), RecordingDetails::fields),
                            "reserved", array(recorder.reserved(), RecordingDetails::fields),
                            "refused", array(recorder.refused(), RecordingDetails::fields),
                            "frames", log.callStacks().frames(),
                            "stacks", log.callStacks().stacks(),
                            "segments", array(log.segments(), RecordingDetails::fields)),
                    out);
        }
    }

    private static Map<String, @Nullable Object> fields(Mark mark) {
        return object("nanos", mark.nanos(), "text", mark.text());
    }

    private static Map<String, @Nullable Object> fields(Reserved at) {
        return object("nanos", at.nanos(), "device", at.device(), "byteSize", at.byteSize());
    }

    private static Map<String, @Nullable Object> fields(Refused then) {
        return object("freeBytes", then.freeBytes(), "reservedBytes", then.reservedBytes());
    }

    private static Map<String, @Nullable Object> fields(Segment segment) {
        return object(
                "allocator", segment.pool(),
                "device", segment.device(),
                "address", segment.address(),
                "byteSize", segment.byteSize(),
                "stream", segment.stream(),
                "blocks", array(segment.blocks(), RecordingDetails::fields));
    }

    private static Map<String, @Nullable Object> fields(Block block) {
        return object(
                "address", block.address(),
                "byteSize", block.byteSize(),
                "requestedBytes", block.requestedBytes(),
                "state", block.state());
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
            marks.add(new Mark(number(mark, "nanos"), String.valueOf(mapOf(mark).get("text"))));
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
        mapOf(fields.getOrDefault("settings", Map.of()))
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

    private static Map<?, ?> mapOf(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map;
        }
        throw new IllegalArgumentException("'" + value + "' is not an object");
    }

    private static long number(Object object, String name) {
        return number(mapOf(object).get(name), name, Long.MAX_VALUE);
    }

    private static long number(@Nullable Object value, String name, long most) {
        Long number = asLong(value);
        if (number == null || number < 0 || number > most) {
            throw new IllegalArgumentException("'" + name + "' has an impossible number: " + value);
        }
        return number;
    }

    private static long orUnknown(Object object, String name) {
        return Long.valueOf(-1).equals(asLong(mapOf(object).get(name))) ? -1 : number(object, name);
    }

    private static @Nullable Long asLong(@Nullable Object value) {
        return value instanceof Integer || value instanceof Long ? ((Number) value).longValue() : null;
    }
}
