package io.cistern.caching.internal.check;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Streams;
import java.util.HashMap;
import java.util.Map;

/// Detects that a stream ended without an announcement: its handle is dead, or belongs to a stream with
/// another number. The driver numbers streams for the life of the process, while handles are used again.
///
/// **Threads.** Any.
final class StreamWatch {
    private static final long DEAD = -1;
    /// An older driver does not number streams; any driver may refuse to answer.
    private static final long UNTOLD = 0;

    private record Key(int device, long stream) {}

    private final Streams streams;
    /// The numbers of streams that were seen and whose ends were not announced.
    private final Map<Key, Long> numbers = new HashMap<>();

    StreamWatch(Streams streams) {
        this.streams = streams;
    }

    /// Checks a stream that a call names.
    ///
    /// @param known whether only a stream that was seen alive counts
    /// @return whether a stream with this handle ended without an announcement; true once for each
    synchronized boolean endedUnannounced(int device, long stream, boolean known) {
        if (stream >= 0 && stream <= Streams.PER_THREAD_DEFAULT) {
            return false;
        }
        Key key = new Key(device, stream);
        Long before = numbers.get(key);
        if (before == null && known) {
            return false;
        }
        long now = number(device, stream);
        if (now == DEAD) {
            numbers.remove(key);
        } else if (before == null || now != UNTOLD) {
            numbers.put(key, now);
        }
        return before != null && before != now && (now == DEAD || (before != UNTOLD && now != UNTOLD));
    }

    synchronized void announced(int device, long stream) {
        numbers.remove(new Key(device, stream));
    }

    private long number(int device, long stream) {
        try {
            return streams.id(device, stream);
        } catch (CudaException failure) {
            boolean gone = failure.result() == CudaResult.INVALID_HANDLE
                    || failure.result() == CudaResult.CONTEXT_IS_DESTROYED;
            return gone ? DEAD : UNTOLD;
        }
    }
}
