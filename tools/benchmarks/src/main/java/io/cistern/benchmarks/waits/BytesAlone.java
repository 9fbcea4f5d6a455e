package io.cistern.benchmarks.waits;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// The same work on memory that is bytes and nothing else: a request takes any free ones, wherever they are. First
/// those that its stream freed, then those whose last work has finished, then new ones, and then those that were freed
/// first, for whose last work its stream waits, and for nothing after it.
///
/// No allocator knows as much. So what this takes with so many bytes is what the memory itself asks for, as far as
/// a rule that does not look ahead can tell.
final class BytesAlone {
    /// Bytes that one free gave, or what is left of them.
    private static final class Freed {
        final BusyGpu.Mark mark;
        long byteSize;

        Freed(BusyGpu.Mark mark, long byteSize) {
            this.mark = mark;
            this.byteSize = byteSize;
        }
    }

    private final BusyGpu gpu;
    /// In the order of the frees.
    private final List<Freed> freed = new ArrayList<>();

    private final long[][] awaited;
    private long newBytes;

    private BytesAlone(BusyGpu gpu, int streamCount, long byteSize) {
        this.gpu = gpu;
        this.awaited = new long[streamCount][streamCount];
        this.newBytes = byteSize;
    }

    /// What one pass takes.
    ///
    /// @param byteSize how much memory there is
    static double nanos(List<TraceRow> rows, int streamCount, long byteSize) {
        BusyGpu gpu = new BusyGpu(streamCount);
        BytesAlone memory = new BytesAlone(gpu, streamCount, byteSize);
        for (TraceRow row : rows) {
            gpu.spend(ModelledReplay.HOST_ROW_NANOS);
            if (row.byteSize() > 0) {
                memory.run(row);
            }
        }
        return gpu.finish();
    }

    private void run(TraceRow row) {
        if (!row.allocates()) {
            freed.add(new Freed(gpu.end(row.stream()), row.byteSize()));
            return;
        }
        for (long missing = row.byteSize(); missing > 0; ) {
            missing -= take(row.stream(), missing);
        }
        gpu.fill(row.stream(), row.byteSize());
    }

    private long take(int stream, long missing) {
        Freed best = freed.stream()
                .min(Comparator.comparingInt(each -> rank(each, stream)))
                .orElse(null);
        if (newBytes > 0 && (best == null || rank(best, stream) > 1)) {
            long taken = Math.min(newBytes, missing);
            newBytes -= taken;
            return taken;
        }
        if (best == null) {
            throw new IllegalStateException("More is live than there is");
        }
        order(stream, best.mark);
        long taken = Math.min(best.byteSize, missing);
        best.byteSize -= taken;
        if (best.byteSize == 0) {
            freed.remove(best);
        }
        return taken;
    }

    private int rank(Freed bytes, int stream) {
        if (bytes.mark.stream() == stream) {
            return 0;
        }
        return gpu.isPast(bytes.mark) || isAwaited(stream, bytes.mark) ? 1 : 2;
    }

    private boolean isAwaited(int stream, BusyGpu.Mark mark) {
        return awaited[stream][mark.stream()] >= mark.position();
    }

    private void order(int stream, BusyGpu.Mark mark) {
        if (mark.stream() != stream && !isAwaited(stream, mark)) {
            gpu.await(stream, mark);
            awaited[stream][mark.stream()] = mark.position();
        }
    }
}
