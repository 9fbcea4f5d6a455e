package io.cistern.cli.imports;

import io.cistern.cli.common.InputException;
import io.cistern.cli.imports.ForeignEvent.Kind;
import io.cistern.cli.trace.Recorder.Refused;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Trace;
import io.cistern.cli.trace.TraceReader;
import io.cistern.cli.trace.TraceRows;
import java.io.IOException;
import java.io.Writer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Turns a log of another allocator into rows of a trace.
///
/// Logs often begin in the middle of a program. Blocks that were live then show up when they are freed, or at
/// the end of the log; their allocations are written before all other rows. If an allocation repeats the
/// address of a live block, the log has lost a free, so a free is inserted there.
///
/// **Threads.** One.
final class ForeignTrace {
    private static final String HEADER = "op,id,bytes,stream,device,thread,nanos";

    private static final char REQUESTED = 'r';

    private interface Rows {
        /// @param op as in a file, or [#REQUESTED]
        /// @param thread the number of the event's thread
        void row(char op, long id, long byteSize, int thread, ForeignEvent event) throws IOException;
    }

    private record Place(int device, long address) {
        static Place of(ForeignEvent event) {
            return new Place(event.device(), event.address());
        }
    }

    private record Block(long id, ForeignEvent allocation) {}

    /// The counts of a written trace.
    ///
    /// @param blocks allocations, including those of blocks that were live before the log began
    /// @param aliveBefore blocks that were live before the log began
    /// @param peakBytes the peak of requested bytes that were live at once, on all devices together
    /// @param refused requests that were refused
    record Summary(long blocks, long aliveBefore, long peakBytes, long refused, int streams, int devices) {}

    private final String file;
    private final Rows rows;
    private final Map<Place, Block> live = new HashMap<>();
    private final Map<Long, Integer> threads = new HashMap<>();
    private final Set<List<Long>> streams = new HashSet<>();
    private final Set<Integer> devices = new HashSet<>();
    private long blocks;
    private long requestedBytes;
    private long peakBytes;
    private long refused;

    private ForeignTrace(String file, Rows rows) {
        this.file = file;
        this.rows = rows;
    }

    /// Writes a log as a trace of format 2 or 3.
    ///
    /// @param stacks whether rows have the numbers of their call stacks, as in format 3
    /// @throws InputException if no replay would read the trace
    static Summary write(String file, ForeignLog log, boolean stacks, Writer out) throws InputException, IOException {
        out.write(HEADER + (stacks ? ",stack\n" : "\n"));
        return make(file, log, (op, id, byteSize, thread, event) -> {
            if (op != REQUESTED) { // Of which a trace has nothing.
                out.write(op + "," + id + "," + byteSize + "," + event.stream() + "," + event.device() + "," + thread
                        + "," + event.nanos() + (stacks ? "," + event.stack() : "") + "\n");
            }
        });
    }

    /// Returns a log as a recording.
    ///
    /// @throws InputException if it exceeds the limits of a trace
    static Recording recording(String file, ForeignLog log) throws InputException, IOException {
        TraceRows builder = new TraceRows();
        Iterator<Refused> refused = log.recorder().refused().iterator();
        try {
            Summary summary = make(file, log, (op, id, byteSize, thread, event) -> {
                builder.thread(thread);
                builder.origin(event.nanos(), event.stack());
                switch (op) {
                    case 'a' -> builder.allocate(id, byteSize, event.device(), event.stream());
                    case 'f' -> builder.free(id, event.device(), event.stream());
                    case 't' -> builder.trim(event.device());
                    case REQUESTED -> builder.freeRequested(id);
                    default ->
                        builder.refused(
                                byteSize,
                                event.device(),
                                event.stream(),
                                refused.hasNext() ? refused.next() : Refused.UNKNOWN);
                }
            });
            return builder.recording(
                    TraceReader.nameOf(file), log.callStacks(), log.recorder().withOlderBlocks(summary.aliveBefore()));
        } catch (IllegalArgumentException impossible) { // More streams or rows than a trace may have.
            throw new InputException(file, String.valueOf(impossible.getMessage()));
        }
    }

    private static Summary make(String file, ForeignLog log, Rows rows) throws InputException, IOException {
        ForeignTrace trace = new ForeignTrace(file, rows);
        List<ForeignEvent> before = aliveBefore(log);
        for (ForeignEvent block : before) {
            trace.add(block);
        }
        for (ForeignEvent event : log.events()) {
            trace.add(event);
        }
        return new Summary(
                trace.blocks,
                before.size(),
                trace.peakBytes,
                trace.refused,
                trace.streams.size(),
                trace.devices.size());
    }

    private static List<ForeignEvent> aliveBefore(ForeignLog log) {
        long first = log.events().isEmpty() ? 0 : log.events().getFirst().nanos();
        Set<Place> known = new HashSet<>();
        Map<Place, ForeignEvent> before = new LinkedHashMap<>();
        for (ForeignEvent event : log.events()) {
            if (event.isOfBlock() && known.add(Place.of(event)) && event.kind() == Kind.FREED) {
                before.put(Place.of(event), event.before(first));
            }
        }
        for (ForeignEvent block : log.alive()) {
            if (known.add(Place.of(block))) {
                before.put(Place.of(block), block.before(first));
            }
        }
        return new ArrayList<>(before.values());
    }

    private void add(ForeignEvent event) throws InputException, IOException {
        devices.add(event.device());
        switch (event.kind()) {
            case ALLOCATED -> allocated(event);
            case FREED -> freed(live.remove(Place.of(event)), event);
            case FREE_REQUESTED -> {
                Block block = live.get(Place.of(event));
                if (block != null) {
                    row(REQUESTED, block.id, 0, event);
                }
            }
            case REFUSED -> {
                refused++;
                row('o', 0, event.byteSize(), event);
            }
            case TRIMMED -> row('t', 0, 0, event);
        }
    }

    private void allocated(ForeignEvent event) throws InputException, IOException {
        freed(live.remove(Place.of(event)), event);
        Block block = new Block(blocks++, event);
        live.put(Place.of(event), block);
        requestedBytes += event.byteSize();
        if (requestedBytes < 0) {
            throw new InputException(file, "more than 8 EiB live at once");
        }
        peakBytes = Math.max(peakBytes, requestedBytes);
        row('a', block.id, event.byteSize(), event);
    }

    private void freed(@Nullable Block block, ForeignEvent event) throws InputException, IOException {
        if (block != null) {
            requestedBytes -= block.allocation.byteSize();
            row('f', block.id, block.allocation.byteSize(), event);
        }
    }

    private void row(char op, long id, long byteSize, ForeignEvent event) throws InputException, IOException {
        if (event.isOfBlock()
                && streams.add(List.of((long) event.device(), event.stream()))
                && streams.size() > Trace.MAX_STREAMS) {
            throw new InputException(file, "more than " + Trace.MAX_STREAMS + " streams");
        }
        int thread = threads.computeIfAbsent(event.thread(), _ -> threads.size());
        rows.row(op, id, byteSize, thread, event);
    }
}
