package io.cistern.cli.torch;

import io.cistern.cli.common.InputException;
import io.cistern.cli.torch.PickleReader.Dictionary;
import io.cistern.cli.torch.PickleReader.Items;
import io.cistern.cli.trace.Trace;
import java.io.InputStream;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A snapshot of PyTorch's `torch.cuda.memory._dump_snapshot`: a pickled dictionary with the current segments and
/// a history of each device. Before 2.0 it was a list of segments, without a history.
///
/// @param segments the memory now
/// @param traces the history of each device, by ordinal; empty lists if none was recorded
/// @param annotations marks that the program set
public record TorchSnapshot(
        List<Segment> segments, List<List<Event>> traces, List<Annotation> annotations, Map<String, String> settings) {
    /// The stream of an event that does not say.
    public static final long NO_STREAM = -1;

    private static final Frames NO_FRAMES = new Frames(List.of());
    private static final Pattern ACTIONS = Pattern.compile("alloc|free.*|segment_.*|oom|snapshot");
    private static final String PRIVATE_POOL = "PyTorch's pool ";
    private static final String NO_SNAPSHOT = "is not a PyTorch snapshot: ";

    /// A range of memory that the allocator manages.
    ///
    /// @param pool the id of its pool, in words
    /// @param stream the stream that it serves
    /// @param blocks its blocks by address
    public record Segment(int device, String pool, long address, long byteSize, long stream, List<Block> blocks) {
        /// Returns whether it belongs to a private pool of PyTorch's: a graph's, or one that the program made.
        public boolean isPrivate() {
            return pool.startsWith(PRIVATE_POOL);
        }
    }

    /// A part of a segment.
    ///
    /// @param requestedBytes bytes that the program asked for
    /// @param state PyTorch's word, as `active_allocated`
    /// @param frames where it was allocated, innermost first
    public record Block(long address, long byteSize, long requestedBytes, String state, Frames frames) {
        /// Returns whether the program, or a stream, still uses it.
        public boolean isActive() {
            return state.startsWith("active");
        }

        /// Returns whether the program has freed it, but another stream still uses it.
        public boolean isWaiting() {
            return isActive() && !state.equals("active_allocated");
        }
    }

    /// Something that happened.
    ///
    /// @param action PyTorch's word, as `alloc`
    /// @param pool the id of the pool, in words
    /// @param address its address; of a refused request, the free bytes of the device, or -1 if unknown
    /// @param stream the stream's handle, or [#NO_STREAM]
    /// @param nanos nanoseconds since the first event of all devices; 0 without a time
    /// @param thread what the program noted with it; empty if nothing
    /// @param category what kind of memory a profiler found it to be, as `parameter`; empty if unknown
    /// @param frames where it happened, innermost first
    public record Event(
            String action,
            String pool,
            long address,
            long byteSize,
            long stream,
            long nanos,
            String thread,
            String category,
            Frames frames) {
        /// Returns the event of a history that does not say when requested frees complete: they do at once.
        private Event freed() {
            return action.equals("free_requested")
                    ? new Event("free", pool, address, byteSize, stream, nanos, thread, category, frames)
                    : this;
        }
    }

    /// A mark that the program set.
    ///
    /// @param nanos nanoseconds since the first event
    public record Annotation(String text, long nanos) {}

    /// A call stack. Events of one place share it.
    ///
    /// @param all lines as `step(train.py:12)`, innermost first
    public record Frames(List<String> all) {
        /// Returns its lines.
        ///
        /// @param most how many at most: of a longer stack the innermost ones, and the outermost ones,
        ///     which are the program's own
        public List<String> lines(int most) {
            int left = all.size() - most;
            return left <= 0
                    ? all
                    : IntStream.range(0, all.size())
                            .filter(i -> i < most / 2 || i >= most / 2 + left)
                            .mapToObj(all::get)
                            .toList();
        }
    }

    /// Reads a snapshot.
    ///
    /// @throws InputException if the file is not a PyTorch snapshot, or has impossible values
    public static TorchSnapshot read(String file, InputStream in) throws InputException {
        Object top = new PickleReader(file, in).read();
        Dictionary fields = switch (top) {
            case Items segments -> Dictionary.of("segments", segments);
            case Dictionary all -> all;
            default -> new Dictionary();
        };
        if (!(fields.get("segments") instanceof Items)) {
            throw new InputException(
                    file, "is a pickle, but not a PyTorch snapshot: it has no top-level list 'segments'");
        }
        return new Reader(file).snapshot(new Fields(file, "", -1, fields));
    }

    /// Returns who took it: PyTorch, or Cistern in PyTorch's form.
    public String recorder() {
        return "Cistern".equals(settings.get("recorded_by")) ? "Cistern" : "PyTorch";
    }

    public int eventCount() {
        return traces.stream().mapToInt(List::size).sum();
    }

    /// Returns whether an event requests the free of a block, and the next one completes it.
    public static boolean isFreedAtOnce(List<Event> trace, int index) {
        Event requested = trace.get(index);
        return index + 1 < trace.size()
                && requested.action().equals("free_requested")
                && trace.get(index + 1).action().equals("free_completed")
                && trace.get(index + 1).address() == requested.address();
    }

    /// Checks the values of a pickle. It counts what it makes: a pickle of a few bytes can name one list a million
    /// times.
    private static final class Reader {
        /// The most characters of a name or a note. A pickle can name one of a megabyte in each frame.
        private static final int MAX_TEXT = 1000;

        private static final String CUT = "…";

        private final String file;
        /// Stacks by what their lists share.
        private final IdentityHashMap<Object, Frames> known = new IdentityHashMap<>();
        /// The lines of frames. A snapshot has few frames, each once, in many stacks.
        private final IdentityHashMap<Object, String> lines = new IdentityHashMap<>();

        /// Notes that are shown otherwise than they were written.
        private final IdentityHashMap<String, String> notes = new IdentityHashMap<>();

        private long firstMicros = Long.MAX_VALUE;
        private int count;

        Reader(String file) {
            this.file = file;
        }

        TorchSnapshot snapshot(Fields top) throws InputException {
            List<?> histories = top.has("device_traces") ? top.list("device_traces") : List.of();
            for (int device = 0; device < histories.size(); device++) {
                for (Fields entry : counted(top.maps("device_traces", device, histories.get(device)))) {
                    if (ACTIONS.matcher(entry.text("action", "")).matches()) { // Others may have any time.
                        firstMicros = Math.min(firstMicros, entry.micros());
                    }
                }
            }
            List<List<Event>> traces = new ArrayList<>();
            for (int device = 0; device < histories.size(); device++) {
                List<Event> events = new ArrayList<>();
                for (Fields entry : top.maps("device_traces", device, histories.get(device))) {
                    events.add(event(entry));
                }
                traces.add(events);
            }
            List<Segment> segments = new ArrayList<>();
            for (Fields segment : counted(top.maps("segments"))) {
                segments.add(segment(segment));
            }
            IntStream.range(0, traces.size())
                    .filter(device -> !tellsCompletions(device, traces.get(device), segments))
                    .forEach(device -> traces.get(device).replaceAll(Event::freed));
            return new TorchSnapshot(segments, traces, annotations(top), top.texts("allocator_settings"));
        }

        private static boolean tellsCompletions(int device, List<Event> trace, List<Segment> segments) {
            return trace.stream().anyMatch(event -> event.action().equals("free_completed"))
                    || segments.stream()
                            .filter(segment -> segment.device() == device)
                            .anyMatch(segment -> segment.blocks().stream().anyMatch(Block::isWaiting));
        }

        private List<Fields> counted(List<Fields> made) throws InputException {
            count += made.size();
            if (count > Trace.MAX_ROWS) {
                throw new InputException(file, "has more than " + Trace.MAX_ROWS + " events, segments and blocks");
            }
            return made;
        }

        private Event event(Fields entry) throws InputException {
            String action = entry.text("action", "");
            String address = action.equals("oom") ? "device_free" : "addr";
            return new Event(
                    action,
                    entry.pool("pool_id"),
                    entry.has(address) ? entry.number(address) : action.equals("oom") ? -1 : 0,
                    entry.bytes("size"),
                    entry.stream(),
                    nanos(entry),
                    note(entry.text("user_metadata", "")),
                    note(entry.text("category", "")),
                    frames(entry.frames()));
        }

        private Frames frames(@Nullable Items items) {
            return items == null || items.list().isEmpty()
                    ? NO_FRAMES
                    : known.computeIfAbsent(items.content(), _ -> new Frames(lines(items.list())));
        }

        private List<String> lines(List<?> frames) {
            return frames.stream()
                    .map(frame -> lines.computeIfAbsent(frame, Reader::line))
                    .toList();
        }

        private static String line(Object entry) {
            if (entry instanceof String line) {
                return beginning(line);
            }
            return entry instanceof Dictionary frame
                    ? beginning(scalar(frame.get("name"))) + "(" + end(scalar(frame.get("filename"))) + ":"
                            + beginning(scalar(frame.get("line"))) + ")"
                    : "?";
        }

        private static String scalar(@Nullable Object part) {
            return part instanceof String || part instanceof Long ? part.toString() : "?";
        }

        private String note(String text) {
            return text.length() <= MAX_TEXT && InputException.oneLine(text).equals(text)
                    ? text
                    : notes.computeIfAbsent(text, Reader::beginning);
        }

        /// Returns a text as it can be shown, without the end of a long one.
        private static String beginning(String text) {
            if (text.length() <= MAX_TEXT) {
                return InputException.oneLine(text);
            }
            int end = Character.isHighSurrogate(text.charAt(MAX_TEXT - 1)) ? MAX_TEXT - 1 : MAX_TEXT;
            return InputException.oneLine(text.substring(0, end)) + CUT;
        }

        /// Returns a path as it can be shown, without the beginning of a long one.
        private static String end(String path) {
            int start = path.length() - MAX_TEXT;
            if (start <= 0) {
                return InputException.oneLine(path);
            }
            return CUT
                    + InputException.oneLine(
                            path.substring(Character.isLowSurrogate(path.charAt(start)) ? start + 1 : start));
        }

        private long nanos(Fields entry) throws InputException {
            long micros = entry.micros();
            return micros == Long.MAX_VALUE ? 0 : Math.max(0, micros - firstMicros) * 1000;
        }

        private Segment segment(Fields segment) throws InputException {
            List<Block> blocks = new ArrayList<>();
            long address = segment.number("address");
            long next = address;
            for (Fields block : counted(segment.maps("blocks"))) {
                long byteSize = block.bytes("size");
                long at = block.has("address") ? block.number("address") : next;
                blocks.add(new Block(
                        at, byteSize, block.requestedBytes(), block.text("state", ""), frames(block.frames())));
                next = block.end(at, byteSize);
            }
            return new Segment(
                    segment.device(),
                    segment.pool("segment_pool_id"),
                    address,
                    segment.bytes("total_size"),
                    segment.stream(),
                    blocks);
        }

        /// A mark of a program is written once for each device.
        private List<Annotation> annotations(Fields top) throws InputException {
            Map<Annotation, Boolean> annotations = new LinkedHashMap<>();
            List<Fields> marks =
                    top.has("external_annotations") ? counted(top.maps("external_annotations")) : List.of();
            for (Fields mark : marks) {
                String end = mark.text("stage", "").equals("END") ? " ends" : "";
                annotations.put(new Annotation(note(mark.text("name", "")) + end, nanos(mark)), true);
            }
            return List.copyOf(annotations.keySet());
        }
    }

    /// The entries of one dictionary, with the checks that all of them need.
    ///
    /// @param list the name of the list that it lies in, as `segments[3].blocks`; empty for the whole snapshot
    /// @param index its index there
    private record Fields(String file, String list, int index, Dictionary entries) {
        /// 285 years; a thousand times as much still fits into a `long`.
        private static final long MAX_MICROS = 1L << 53;

        private static final int MAX_DEVICE = 1 << 10;

        /// More than any address space; sums with sizes still fit into a `long`.
        private static final long MAX_ADDRESS = 1L << 62;

        boolean has(String name) {
            return entries.get(name) != null;
        }

        long number(String name) throws InputException {
            return number(name, MAX_ADDRESS);
        }

        /// Returns the handle of a stream; 0 in versions that do not say. PyTorch writes it with a sign.
        long stream() {
            return entries.get("stream") instanceof Long handle ? handle & Long.MAX_VALUE : 0;
        }

        private long number(String name, long most) throws InputException {
            if (!(entries.get(name) instanceof Long number)) {
                throw error("has no whole number '" + name + "'");
            }
            if (number < 0 || number > most) {
                throw error("has an impossible '" + name + "': " + number);
            }
            return number;
        }

        long end(long address, long byteSize) throws InputException {
            if (address + byteSize > MAX_ADDRESS) {
                throw error("ends past the last address");
            }
            return address + byteSize;
        }

        long bytes(String name) throws InputException {
            return number(name, Trace.MAX_BLOCK_BYTES);
        }

        int device() throws InputException {
            return (int) number("device", MAX_DEVICE);
        }

        /// Returns the time, or the largest number if there is none.
        long micros() throws InputException {
            return has("time_us") ? number("time_us", MAX_MICROS) : Long.MAX_VALUE;
        }

        String text(String name, String otherwise) {
            return entries.get(name) instanceof String text ? text : otherwise;
        }

        /// Returns, for example, `PyTorch's pool 0.1`; the pool 0.0 is the usual one.
        String pool(String name) {
            return entries.get(name) instanceof List<?> id && id.size() == 2 && !id.equals(List.of(0L, 0L))
                    ? PRIVATE_POOL + number(id.get(0)) + "." + number(id.get(1))
                    : "PyTorch";
        }

        private static String number(Object part) {
            return part instanceof Long number ? number.toString() : "?";
        }

        @Nullable
        Items frames() {
            return allocation().entries.get("frames") instanceof Items frames ? frames : null;
        }

        /// Returns what the program asked for in a block.
        long requestedBytes() throws InputException {
            Fields allocation = allocation();
            return has("requested_size")
                    ? bytes("requested_size")
                    : allocation.has("real_size") ? allocation.bytes("real_size") : bytes("size");
        }

        /// Returns what says who allocated: in PyTorch before 2.1, the first entry of a block's history.
        private Fields allocation() {
            return entries.get("history") instanceof Items history
                            && history.list().stream().findFirst().orElse(null) instanceof Dictionary first
                    ? new Fields(file, inner("history"), 0, first)
                    : this;
        }

        Map<String, String> texts(String name) {
            Map<String, String> texts = new LinkedHashMap<>();
            if (entries.get(name) instanceof Dictionary inner) {
                for (String key : inner.names()) {
                    String text = text(inner.get(key));
                    if (text != null) {
                        texts.put(Reader.beginning(key), Reader.beginning(text));
                    }
                }
            }
            return texts;
        }

        /// Returns the text of a setting; of one that is a dictionary of numbers, those that are not 0, as
        /// `[256:1,512:2]`.
        private static @Nullable String text(@Nullable Object value) {
            if (value instanceof Dictionary inner) {
                String entries = inner.names().stream()
                        .filter(key -> inner.get(key) instanceof Number number && number.longValue() != 0)
                        .map(key -> key + ":" + inner.get(key))
                        .collect(Collectors.joining(","));
                return entries.isEmpty() ? null : "[" + entries + "]";
            }
            return value instanceof String || value instanceof Number || value instanceof Boolean
                    ? String.valueOf(value)
                    : null;
        }

        List<Fields> maps(String name) throws InputException {
            return maps(file, inner(name), entries.get(name));
        }

        List<?> list(String name) throws InputException {
            return list(file, inner(name), entries.get(name));
        }

        /// Returns the dictionaries of one of the lists in a list.
        List<Fields> maps(String name, int index, Object value) throws InputException {
            return maps(file, name + "[" + index + "]", value);
        }

        private static List<Fields> maps(String file, String name, @Nullable Object value) throws InputException {
            List<?> values = list(file, name, value);
            for (Object each : values) {
                if (!(each instanceof Dictionary)) {
                    throw new InputException(file, NO_SNAPSHOT + "'" + name + "' holds no dictionaries");
                }
            }
            return new AbstractList<>() { // A million of them at once would take much memory.
                @Override
                public Fields get(int index) {
                    return new Fields(file, name, index, (Dictionary) values.get(index));
                }

                @Override
                public int size() {
                    return values.size();
                }
            };
        }

        private static List<?> list(String file, String name, @Nullable Object value) throws InputException {
            if (value instanceof Items items) {
                return items.list();
            }
            throw new InputException(file, NO_SNAPSHOT + "'" + name + "' is not a list");
        }

        private String inner(String name) {
            return list.isEmpty() ? name : place() + "." + name;
        }

        private String place() {
            return list + "[" + index + "]";
        }

        private InputException error(String what) {
            return new InputException(file, NO_SNAPSHOT + "'" + place() + "' " + what);
        }
    }
}
