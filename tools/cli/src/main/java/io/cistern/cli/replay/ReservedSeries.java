package io.cistern.cli.replay;

import io.cistern.cli.trace.Trace;
import java.io.PrintWriter;
import java.util.function.LongSupplier;

/// Writes a program's live bytes and its allocators' reserved bytes as it goes through a trace: a CSV row
/// `trace,allocator,device,operation,requestedBytes,reservedBytes` for about 400 of the operations, in the
/// first pass only.
final class ReservedSeries implements BlockWork {
    static final String HEADER = "trace,allocator,device,operation,requestedBytes,reservedBytes";
    private static final int ROWS = 400;

    private final PrintWriter out;
    private final String labels;
    private final int operations;
    private final LongSupplier reservedBytes;
    private int operation;
    private long requestedBytes;
    private long mostRequestedBytes;
    private long mostReservedBytes;

    ReservedSeries(PrintWriter out, String labels, int operations, LongSupplier reservedBytes) {
        this.out = out;
        this.labels = labels;
        this.operations = operations;
        this.reservedBytes = reservedBytes;
    }

    /// Keeps the maxima between two rows, so that even a short peak shows.
    @Override
    public void play(byte op, int row, long address, long byteSize, long stream) {
        if (op == Trace.USE) {
            return;
        }
        requestedBytes += op == Trace.ALLOCATE ? byteSize : -byteSize;
        operation++;
        mostRequestedBytes = Math.max(mostRequestedBytes, requestedBytes);
        if (operation > operations) {
            return;
        }
        mostReservedBytes = Math.max(mostReservedBytes, reservedBytes.getAsLong());
        if (operation % Math.max(1, operations / ROWS) == 0) {
            out.print(labels + "," + operation + "," + mostRequestedBytes + "," + mostReservedBytes + "\n");
            mostRequestedBytes = 0;
            mostReservedBytes = 0;
        }
    }
}
