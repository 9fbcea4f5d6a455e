package io.cistern.cli.imports;

import io.cistern.cli.imports.ForeignEvent.Kind;
import io.cistern.cli.trace.TraceException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import net.razorvine.pickle.PickleException;
import net.razorvine.pickle.Unpickler;
import org.jspecify.annotations.Nullable;

/// Reads a snapshot of PyTorch's `torch.cuda.memory._dump_snapshot`: a pickled dictionary with the current
/// segments and a history of each device.
///
/// 1. A block's `alloc` and `free_completed` are its allocation and its free. Between `free_requested` and
///    `free_completed`, other streams still used it; the snapshot does not say which. If the history of a
///    device has no completions, requests count as frees.
/// 2. Blocks that are live in the segments are live at the end.
/// 3. The histories of several devices are merged by their times.
final class TorchSnapshot {
    private static final long NANOS_PER_MICRO = 1_000;

    /// The first byte of a pickle.
    private static final int PICKLE = 0x80;

    private final String file;
    private long firstMicros = Long.MAX_VALUE;

    private TorchSnapshot(String file) {
        this.file = file;
    }

    /// Reads a snapshot.
    ///
    /// @param file its name, for errors
    /// @param in with marks
    /// @throws TraceException if the file is not a PyTorch snapshot, or has no history
    static ForeignLog read(String file, InputStream in) throws TraceException, IOException {
        in.mark(1);
        boolean isPickle = in.read() == PICKLE;
        in.reset();
        Object unpickled;
        try {
            unpickled = new Unpickler().load(in);
        } catch (PickleException | ClassCastException | IndexOutOfBoundsException | NegativeArraySizeException e) {
            throw new TraceException(
                    file,
                    isPickle
                            ? "is no pickle that can be read: " + e.getMessage()
                            : "is neither a pickle of PyTorch's nor an RMM log with the columns " + RmmLog.HEADER);
        }
        if (!(unpickled instanceof Map<?, ?> snapshot && snapshot.get("device_traces") instanceof List<?> traces)) {
            throw new TraceException(
                    file, "is a pickle, but no snapshot of PyTorch's: it has no list 'device_traces' on top");
        }
        return new TorchSnapshot(file).log(snapshot, traces);
    }

    private ForeignLog log(Map<?, ?> snapshot, List<?> traces) throws TraceException {
        for (Object trace : traces) {
            findFirst(list(trace, "device_traces"));
        }
        List<ForeignEvent> events = new ArrayList<>();
        for (int device = 0; device < traces.size(); device++) {
            addEvents(device, list(traces.get(device), "device_traces"), events);
        }
        if (events.isEmpty()) {
            throw new TraceException(
                    file,
                    "has no history: call torch.cuda.memory._record_memory_history() before what is to be recorded");
        }
        events.sort(Comparator.comparingLong(ForeignEvent::nanos)); // Stable: events of one device keep their order.
        return new ForeignLog(alive(list(snapshot.get("segments"), "segments")), events);
    }

    private void findFirst(List<?> trace) throws TraceException {
        for (Object entry : trace) {
            if (map(entry, "device_traces").get("time_us") instanceof Number micros) {
                firstMicros = Math.min(firstMicros, micros.longValue());
            }
        }
    }

    private void addEvents(int device, List<?> trace, List<ForeignEvent> events) throws TraceException {
        boolean completions = trace.stream()
                .anyMatch(entry -> entry instanceof Map<?, ?> fields && "free_completed".equals(fields.get("action")));
        for (Object entry : trace) {
            Map<?, ?> fields = map(entry, "device_traces");
            Kind kind = switch (String.valueOf(fields.get("action"))) {
                case "alloc" -> Kind.ALLOCATED;
                case "free_completed" -> Kind.FREED;
                case "free_requested", "free" -> completions ? null : Kind.FREED;
                case "oom" -> Kind.REFUSED;
                default -> null; // Segment events and others.
            };
            if (kind != null) {
                long address = kind == Kind.REFUSED ? 0 : number(fields, "addr");
                events.add(new ForeignEvent(
                        kind, address, number(fields, "size"), number(fields, "stream"), device, 0, nanos(fields)));
            }
        }
    }

    private long nanos(Map<?, ?> fields) {
        return fields.get("time_us") instanceof Number micros
                ? (micros.longValue() - firstMicros) * NANOS_PER_MICRO
                : 0;
    }

    private List<ForeignEvent> alive(List<?> segments) throws TraceException {
        List<ForeignEvent> alive = new ArrayList<>();
        for (Object each : segments) {
            Map<?, ?> segment = map(each, "segments");
            long address = number(segment, "address");
            for (Object other : list(segment.get("blocks"), "blocks")) {
                Map<?, ?> block = map(other, "blocks");
                if (String.valueOf(block.get("state")).startsWith("active")) {
                    long byteSize = number(block, block.containsKey("requested_size") ? "requested_size" : "size");
                    alive.add(new ForeignEvent(
                            Kind.ALLOCATED,
                            block.containsKey("address") ? number(block, "address") : address,
                            byteSize,
                            number(segment, "stream"),
                            (int) number(segment, "device"),
                            0,
                            0));
                }
                address += number(block, "size");
            }
        }
        return alive;
    }

    private long number(Map<?, ?> fields, String name) throws TraceException {
        if (fields.get(name) instanceof Number number) {
            return number.longValue();
        }
        throw new TraceException(file, "is no snapshot of PyTorch's: an entry has no number '" + name + "'");
    }

    private List<?> list(@Nullable Object value, String name) throws TraceException {
        if (value instanceof List<?> list) {
            return list;
        }
        throw new TraceException(file, "is no snapshot of PyTorch's: '" + name + "' is no list");
    }

    private Map<?, ?> map(@Nullable Object value, String name) throws TraceException {
        if (value instanceof Map<?, ?> map) {
            return map;
        }
        throw new TraceException(file, "is no snapshot of PyTorch's: '" + name + "' holds no dictionaries");
    }
}
