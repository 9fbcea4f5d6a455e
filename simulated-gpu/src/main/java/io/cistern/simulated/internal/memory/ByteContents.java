package io.cistern.simulated.internal.memory;

import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// The bytes of device memory of any size, in little heap: an interval map of patterns and data.
///
/// ```
/// offset 0            4 MiB      4 MiB + 4 KiB                 byteSize
///        | pattern 0    | data      | pattern 0xabababab          |
/// ```
/// 1. Runs cover `[0, byteSize)` without gaps or overlaps; fresh memory is one run of zeros.
/// 2. A fill cuts its range out and puts one pattern run there, joined with equal neighbours.
/// 3. A write changes a data run in place. In a pattern it first turns the pages (4 KiB) that it touches into
///    data, so that many small writes make few runs.
///
/// Invariant: each run's end is the next run's start. Guarded by the machine's lock.
public final class ByteContents implements Contents {
    /// The least that a small write turns from pattern into data.
    private static final int PAGE_BYTES = 4096;
    /// The largest data run: small enough that an array that is mostly overwritten wastes little.
    private static final int RUN_BYTES = 1 << 16;

    final TreeMap<Long, Run> runs = new TreeMap<>();

    public ByteContents(long byteSize) {
        runs.put(0L, new Run(byteSize, 0, null, 0));
    }

    @Override
    public void fill(long offset, long length, int word) {
        if (length == 0) {
            return;
        }
        long start = offset;
        long end = offset + length;
        cut(start, end);
        Map.Entry<Long, Run> before = runs.lowerEntry(start);
        if (before != null && before.getValue().isPattern(word)) {
            start = before.getKey();
        }
        Run after = runs.get(end);
        if (after != null && after.isPattern(word)) {
            runs.remove(end);
            end = after.end;
        }
        runs.put(start, new Run(end, word, null, 0));
    }

    @Override
    public void write(long offset, byte[] source, int sourceOffset, int length) {
        long at = offset;
        long end = offset + length;
        while (at < end) {
            Map.Entry<Long, Run> entry = runs.floorEntry(at);
            if (entry.getValue().data == null) {
                entry = materialize(entry.getKey(), entry.getValue(), at, end);
            }
            Run run = entry.getValue();
            int size = (int) (Math.min(end, run.end) - at);
            byte[] data = java.util.Objects.requireNonNull(run.data);
            System.arraycopy(
                    source,
                    sourceOffset + (int) (at - offset),
                    data,
                    run.dataOffset + (int) (at - entry.getKey()),
                    size);
            at += size;
        }
    }

    @Override
    public void forEachRun(long offset, long length, RunSink sink) {
        long at = offset;
        long end = offset + length;
        while (at < end) {
            Map.Entry<Long, Run> entry = runs.floorEntry(at);
            Run run = entry.getValue();
            long upTo = Math.min(end, run.end);
            byte[] data = run.data;
            if (data == null) {
                sink.pattern(at, upTo - at, run.word);
            } else {
                sink.data(at, data, run.dataOffset + (int) (at - entry.getKey()), (int) (upTo - at));
            }
            at = upTo;
        }
    }

    /// Turns the pages of a pattern run that a write touches into a data run, which begins at or before `at`.
    private Map.Entry<Long, Run> materialize(long runStart, Run run, long at, long end) {
        long from = Math.max(runStart, at & -PAGE_BYTES);
        long to = Math.min(run.end, (Math.min(end, from + RUN_BYTES) + PAGE_BYTES - 1) & -PAGE_BYTES);
        byte[] data = new byte[(int) (to - from)];
        if (run.word == Contents.shifted(run.word, 1)) {
            Arrays.fill(data, (byte) run.word);
        } else {
            for (int i = 0; i < data.length; i++) {
                data[i] = Contents.byteOf(run.word, from + i);
            }
        }
        cut(from, to);
        Run made = new Run(to, 0, data, 0);
        runs.put(from, made);
        return Map.entry(from, made);
    }

    /// Removes `[start, end)` from the map. The caller fills the gap.
    private void cut(long start, long end) {
        Map.Entry<Long, Run> left = runs.floorEntry(start);
        long at = left.getKey();
        Run run = left.getValue();
        if (at < start) {
            runs.put(at, new Run(start, run.word, run.data, run.dataOffset));
        }
        while (true) {
            if (at >= start) {
                runs.remove(at);
            }
            if (run.end > end) {
                int offset = run.data == null ? 0 : run.dataOffset + (int) (end - at);
                runs.put(end, new Run(run.end, run.word, run.data, offset));
            }
            if (run.end >= end) {
                return;
            }
            at = run.end;
            run = java.util.Objects.requireNonNull(runs.get(at));
        }
    }

    /// A run up to `end`: a pattern if `data` is null, else bytes from `dataOffset` on.
    static final class Run {
        final long end;
        private final int word;
        private final byte @Nullable [] data;
        private final int dataOffset;

        Run(long end, int word, byte @Nullable [] data, int dataOffset) {
            this.end = end;
            this.word = word;
            this.data = data;
            this.dataOffset = dataOffset;
        }

        boolean isPattern(int other) {
            return data == null && word == other;
        }
    }
}
