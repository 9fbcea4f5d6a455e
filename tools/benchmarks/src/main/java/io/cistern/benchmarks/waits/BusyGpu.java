package io.cistern.benchmarks.waits;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Queue;
import java.util.stream.IntStream;

/// A host that gives fills to the streams of a GPU and how long both take: what the simulated GPU leaves out.
///
/// 1. A fill takes its latency, beside those of other streams, and then its bytes at the memory's speed, which the
/// streams that are writing share equally.
/// 2. A stream that waits for a mark stands still until the stream of the mark is past it.
/// 3. A stream takes so many pieces of work; the host waits for room in a full one. That ties it to the GPU.
///
/// The figures are an H200's. Latency and speed: what traces of one stream took, where nothing overlaps. Room: how much
/// was left to do when the host had done its part of those. The host's share of a fill: what traces of small blocks
/// took; the model has what fits vit_streams without waits.
final class BusyGpu {
    private static final double BYTES_PER_NANO = 4200;
    private static final double FILL_NANOS = 2400;
    private static final double AWAIT_NANOS = 1000;
    private static final double RECORD_NANOS = 500;
    private static final double HOST_FILL_NANOS = 3000;
    private static final int ROOM = 960;

    /// A place in a stream: behind so many pieces of its work.
    record Mark(int stream, long position) {}

    private record Work(double byteSize, double nanos, Mark awaited, double issuedAt) {}

    private static final class Stream {
        final Queue<Work> work = new ArrayDeque<>();
        /// Pieces given to it and done.
        long given;

        long done;
        boolean running;
        double latencyEnd;
        double bytesLeft;
    }

    private final Stream[] streams;
    private final Mark nothing = new Mark(0, 0);
    private double hostNanos;
    private double nanos;

    BusyGpu(int streamCount) {
        streams = IntStream.range(0, streamCount).mapToObj(_ -> new Stream()).toArray(Stream[]::new);
    }

    /// The host does something else.
    void spend(double hostOnlyNanos) {
        hostNanos += hostOnlyNanos;
        while (step(hostNanos)) {
            // Until then.
        }
    }

    void fill(int stream, long byteSize) {
        spend(HOST_FILL_NANOS);
        while (streams[stream].work.size() >= ROOM) {
            step(Double.POSITIVE_INFINITY);
        }
        hostNanos = Math.max(hostNanos, nanos);
        give(stream, (double) byteSize, FILL_NANOS, nothing);
    }

    Mark record(int stream) {
        give(stream, 0, RECORD_NANOS, nothing);
        return end(stream);
    }

    /// The present end of a stream, as if something were recorded there that takes no time.
    Mark end(int stream) {
        return new Mark(stream, streams[stream].given);
    }

    void await(int stream, Mark mark) {
        if (!isPast(mark)) {
            give(stream, 0, AWAIT_NANOS, mark);
        }
    }

    boolean isPast(Mark mark) {
        return streams[mark.stream()].done >= mark.position();
    }

    /// Lets all streams come to their ends.
    ///
    /// @return when host and GPU have done all
    double finish() {
        while (Arrays.stream(streams).anyMatch(stream -> !stream.work.isEmpty())) {
            step(Double.POSITIVE_INFINITY);
        }
        return Math.max(nanos, hostNanos);
    }

    private void give(int stream, double byteSize, double latencyNanos, Mark awaited) {
        streams[stream].work.add(new Work(byteSize, latencyNanos, awaited, hostNanos));
        streams[stream].given++;
    }

    /// Goes on to the next change, or to a time if that comes first.
    ///
    /// @return whether there was one until then
    private boolean step(double untilNanos) {
        for (Stream stream : streams) {
            start(stream);
        }
        double bytesPerNano = BYTES_PER_NANO / Math.max(1, writing());
        double next = untilNanos;
        for (Stream stream : streams) {
            next = Math.min(next, nextChange(stream, bytesPerNano));
        }
        if (next == Double.POSITIVE_INFINITY) {
            throw new IllegalStateException("Streams wait for each other");
        }
        double passed = next - nanos;
        for (Stream stream : streams) {
            if (isWriting(stream)) {
                stream.bytesLeft -= passed * bytesPerNano;
            }
        }
        nanos = next;
        Arrays.stream(streams).forEach(this::end);
        return next < untilNanos;
    }

    private void start(Stream stream) {
        Work head = stream.work.peek();
        if (!stream.running && head != null && head.issuedAt() <= nanos && isPast(head.awaited())) {
            stream.running = true;
            stream.latencyEnd = nanos + head.nanos();
            stream.bytesLeft = head.byteSize();
        }
    }

    private void end(Stream stream) {
        if (stream.running && stream.latencyEnd <= nanos && stream.bytesLeft < 1) {
            stream.running = false;
            stream.work.remove();
            stream.done++;
        }
    }

    private long writing() {
        return Arrays.stream(streams).filter(this::isWriting).count();
    }

    private boolean isWriting(Stream stream) {
        return stream.running && stream.latencyEnd <= nanos;
    }

    private double nextChange(Stream stream, double bytesPerNano) {
        if (isWriting(stream)) {
            return nanos + stream.bytesLeft / bytesPerNano;
        }
        if (stream.running) {
            return stream.latencyEnd;
        }
        Work head = stream.work.peek();
        return head != null && head.issuedAt() > nanos ? head.issuedAt() : Double.POSITIVE_INFINITY;
    }
}
