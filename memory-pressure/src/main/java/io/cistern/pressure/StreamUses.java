package io.cistern.pressure;

import io.cistern.spi.StreamOrder;
import java.util.Arrays;

/// The last uses of a buffer: a fence for each stream that has used it since it came to its device. Guarded by
/// the buffer.
///
/// A use can't be taken back, so recording one must not fail. A stream is [expected][#expect] before it uses the
/// buffer, which makes room for its fence; after that only [#await] can fail.
final class StreamUses {
    private final StreamOrder order;
    private final int device;
    private long[] streams = new long[1];

    /// The fence of each stream; 0, which has passed, while it is only expected.
    private long[] fences = new long[1];

    private int count;

    StreamUses(StreamOrder order, int device) {
        this.order = order;
        this.device = device;
    }

    /// Makes room for uses of a stream.
    void expect(long stream) {
        if (indexOf(stream) >= 0) {
            return;
        }
        if (count == streams.length) {
            long[] moreStreams = Arrays.copyOf(streams, 2 * count);
            fences = Arrays.copyOf(fences, 2 * count);
            streams = moreStreams;
        }
        streams[count] = stream;
        fences[count++] = 0;
    }

    private int indexOf(long stream) {
        int at = count - 1;
        while (at >= 0 && streams[at] != stream) {
            at--;
        }
        return at;
    }

    /// Records the work enqueued so far on an expected stream as a use.
    void record(long stream) {
        int at = indexOf(stream);
        long before = fences[at];
        fences[at] = order.record(device, stream);
        order.release(device, before);
    }

    /// Records a use of a stream that has waited for all others, and forgets the others.
    void recordLast(long stream) {
        clear();
        expect(stream); // there is room for one
        record(stream);
    }

    /// Makes a stream wait for all uses, including those of an ended stream that had the same handle.
    void await(long stream) {
        for (int i = 0; i < count; i++) {
            order.await(device, stream, fences[i]);
        }
    }

    /// Returns whether all uses but those of one stream are known to be over.
    boolean haveEndedExcept(long stream) {
        for (int i = 0; i < count; i++) {
            if (streams[i] != stream && !order.passed(device, fences[i])) {
                return false;
            }
        }
        return true;
    }

    /// Forgets all uses. Streams that already wait for them keep waiting.
    void clear() {
        while (count > 0) {
            order.release(device, fences[--count]);
        }
    }
}
