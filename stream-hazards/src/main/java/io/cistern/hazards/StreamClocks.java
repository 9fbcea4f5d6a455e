package io.cistern.hazards;

import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiPredicate;
import org.jspecify.annotations.Nullable;

/// The order of work on streams, as CUDA's documentation defines it: vector clocks.
///
/// Work is numbered on each stream. A stream's clock holds, for each other stream, the number of the last work
/// there that comes before this stream's next work. It grows when the stream waits for an event, and by the rule
/// between the legacy default stream and blocking streams. Work that a query or a wait of the host saw finished
/// comes before all that is enqueued later, by any thread: the program's threads are not distinguished.
///
/// **Captures.** Work that is captured runs when its graph is launched. So a captured stream's clock does
/// not advance, and the capture spreads to each stream that waits for one of its events. Inside a capture
/// its streams have clocks of their own, which order the work of one launch.
///
/// Guarded by the owner's lock.
final class StreamClocks {
    private static final long LEGACY = 1;
    private static final long PER_THREAD = 2;

    /// The most ended streams that are kept; the work of older ones has long finished.
    private static final int MOST_ENDED = 1024;

    /// Entries about finished work are dropped once a clock has this many entries.
    private static final int MANY = 16;

    /// Streams that are found without a search. A power of two.
    private static final int RECENT = 64;

    /// A stream, from its first use to its end. A later stream of the same handle is another object.
    static final class Stream {
        final int device;
        final long handle;
        final boolean isLegacy;

        /// The thread whose default stream it is; 0 for other streams.
        private final long thread;

        /// That thread, or null.
        private final @Nullable WeakReference<Thread> owner;

        /// Whether it and the legacy default stream wait for each other.
        private final boolean isBlocking;

        private final Map<Stream, Long> clock = new HashMap<>();
        private long issued;
        private long finished;
        private boolean hasEnded;

        @Nullable
        Capture capture;

        /// The order of its work inside the capture, which never counts as finished; null if there is no
        /// capture.
        @Nullable
        Stream captured;

        private Stream(int device, long handle, long thread, boolean isBlocking) {
            this.device = device;
            this.handle = handle;
            this.thread = thread;
            this.owner = thread == 0 ? null : new WeakReference<>(Thread.currentThread());
            this.isLegacy = handle == LEGACY;
            this.isBlocking = isBlocking;
        }

        long issued() {
            return issued;
        }

        private boolean isOfEndedThread() {
            if (owner == null) {
                return false;
            }
            Thread known = owner.get();
            return known == null || !known.isAlive();
        }

        /// Returns whether it was destroyed, or its thread ended, and its work has finished.
        boolean isOver() {
            return hasEnded && issued <= finished;
        }

        private void joins(@Nullable Capture of) {
            if (capture != of) {
                capture = of;
                captured = of == null ? null : new Stream(device, handle, thread, false);
            }
        }

        private void joins(Stream other) {
            if (!other.clock.isEmpty()) {
                joins(other.clock);
            }
            if (other.issued > other.finished) {
                clock.merge(other, other.issued, Math::max);
            }
        }

        private void joins(Map<Stream, Long> other) {
            if (clock.size() > MANY) {
                clock.entrySet().removeIf(each -> each.getValue() <= each.getKey().finished);
            }
            other.forEach((stream, number) -> {
                if (stream != this && number > stream.finished) {
                    clock.merge(stream, number, Math::max);
                }
            });
        }

        private Map<Stream, Long> now() {
            Map<Stream, Long> now = new HashMap<>();
            clock.forEach((stream, number) -> {
                if (number > stream.finished) {
                    now.put(stream, number);
                }
            });
            if (issued > finished) {
                now.put(this, issued);
            }
            return now;
        }
    }

    private record Key(int device, long handle, long thread) {}

    /// The work before an event.
    private record Mark(Map<Stream, Long> clock, @Nullable Capture capture) {}

    private final Map<Key, Stream> streams = new HashMap<>();

    /// Some of these streams, indexed by their handles: most calls find theirs here. Read without the lock, too.
    private final @Nullable Stream[] recent = new @Nullable Stream[RECENT];

    /// The legacy default streams by device, as far as they are in use.
    private @Nullable Stream[] legacies = new @Nullable Stream[1];

    /// Streams that were destroyed and may still have work.
    private final Deque<Stream> ended = new ArrayDeque<>();

    /// Handles that name no stream now. Read without the lock, too.
    private final Set<Key> endedHandles = ConcurrentHashMap.newKeySet();

    private final Map<Long, Mark> events = new HashMap<>();
    private final BiPredicate<Integer, Long> isBlocking;

    /// @param isBlocking says whether a stream of a device waits for the legacy default stream
    StreamClocks(BiPredicate<Integer, Long> isBlocking) {
        this.isBlocking = isBlocking;
    }

    private static long known(long handle) {
        return handle == 0 ? LEGACY : handle;
    }

    private static long thread(long handle) {
        return handle == PER_THREAD ? Thread.currentThread().threadId() : 0;
    }

    private static int recentOf(int device, long handle) {
        return (int) ((handle >>> 4) ^ (handle >>> 10) ^ handle ^ device) & (RECENT - 1);
    }

    private @Nullable Stream recent(int device, long handle) {
        Stream stream = recent[recentOf(device, handle)];
        return stream != null && stream.handle == handle && stream.device == device && stream.thread == thread(handle)
                ? stream
                : null;
    }

    /// Returns whether a stream is known and was used recently. Needs no lock.
    boolean isRecent(int device, long handle) {
        return recent(device, handle) != null;
    }

    Stream stream(int device, long handle) {
        long known = known(handle);
        Stream stream = recent(device, known);
        if (stream == null) {
            Key key = new Key(device, known, thread(known));
            stream = streams.get(key);
            if (stream == null) {
                endThreads();
                stream = made(key);
                streams.put(key, stream);
                endedHandles.remove(key);
            }
            recent[recentOf(device, known)] = stream;
        }
        return stream;
    }

    /// Ends the default streams of threads that have ended.
    private void endThreads() {
        streams.values().removeIf(each -> {
            boolean isGone = each.isOfEndedThread();
            if (isGone) {
                ended(each);
            }
            return isGone;
        });
    }

    /// Returns whether a stream is over, and if so empties its clock. Otherwise each ended stream would
    /// keep the one before it reachable.
    private static boolean forgets(Stream stream) {
        if (stream.isOver()) {
            stream.clock.clear();
        }
        return stream.isOver();
    }

    private Stream made(Key key) {
        boolean blocks = key.handle <= PER_THREAD || isBlocking.test(key.device, key.handle);
        Stream made = new Stream(key.device, key.handle, key.thread, blocks);
        if (made.isLegacy) {
            legacies = Arrays.copyOf(legacies, Math.max(legacies.length, key.device + 1));
            legacies[key.device] = made;
        }
        return made;
    }

    /// Returns whether a handle names a stream that was destroyed. Needs no lock.
    boolean hasEnded(int device, long handle) {
        return endedHandles.contains(new Key(device, handle, 0));
    }

    /// Returns a stream that comes after all work of a device, for a handle that names no stream.
    Stream afterAll(int device, long handle) {
        Stream stream = new Stream(device, handle, 0, false);
        stream.joins(upTo(device));
        return stream;
    }

    /// Numbers the next work of a stream, or of its capture.
    Stream next(int device, long handle) {
        Stream stream = joined(device, handle);
        (stream.captured == null ? stream : stream.captured).issued++;
        return stream;
    }

    /// Returns a stream. The next work of a blocking stream comes after that of the legacy default stream; that of
    /// the legacy default stream comes after that of all blocking streams.
    Stream joined(int device, long handle) {
        Stream stream = stream(device, handle);
        if (stream.capture == null) {
            if (stream.isLegacy) {
                joinsBlocking(stream, streams.values());
                joinsBlocking(stream, ended);
            } else if (stream.isBlocking) {
                Stream legacy = device < legacies.length ? legacies[device] : null;
                if (legacy != null) {
                    stream.joins(legacy);
                }
            }
        }
        return stream;
    }

    private static void joinsBlocking(Stream legacy, Iterable<Stream> others) {
        for (Stream each : others) {
            if (each.isBlocking && each.device == legacy.device && each != legacy) {
                legacy.joins(each);
            }
        }
    }

    /// Returns whether numbered work comes before the latest work of a stream.
    boolean isBefore(Stream earlier, long number, Stream later) {
        if (earlier == later || number <= earlier.finished) {
            return true;
        }
        Long before = later.clock.get(earlier);
        return before != null && number <= before;
    }

    boolean isFinished(Stream stream, long number) {
        return number <= stream.finished;
    }

    void record(int device, long event, long handle) {
        Stream stream = joined(device, handle); // an event is not work, so it gets no number
        events.put(event, new Mark((stream.captured == null ? stream : stream.captured).now(), stream.capture));
    }

    void recordAll(int device, long event) {
        events.put(event, new Mark(upTo(device), null));
    }

    void await(int device, long handle, long event) {
        Mark mark = events.get(event);
        if (mark == null) {
            return; // never recorded, or recorded by code that is not watched
        }
        Stream stream = stream(device, handle);
        if (mark.capture != null) {
            stream.joins(mark.capture);
        }
        (mark.capture == null || stream.captured == null ? stream : stream.captured).joins(mark.clock);
    }

    void destroyed(long event) {
        events.remove(event);
    }

    /// Returns the work that has finished once an event has passed.
    Map<Stream, Long> upTo(long event) {
        Mark mark = events.get(event);
        return mark == null || mark.capture != null ? Map.of() : mark.clock;
    }

    /// Returns the work that has finished once a stream has passed everything enqueued on it so far.
    Map<Stream, Long> upTo(int device, long handle) {
        Stream stream = known(handle) == LEGACY ? joined(device, handle) : stream(device, handle);
        return stream.capture != null ? Map.of() : stream.now();
    }

    /// Returns the work that has finished once a device has passed everything enqueued on it so far.
    Map<Stream, Long> upTo(int device) {
        Map<Stream, Long> all = new HashMap<>();
        java.util.stream.Stream.concat(streams.values().stream(), ended.stream())
                .filter(each -> each.device == device && each.issued > each.finished)
                .forEach(each -> all.put(each, each.issued));
        return all;
    }

    void finished(Map<Stream, Long> work) {
        work.forEach((stream, number) -> stream.finished = Math.max(stream.finished, number));
    }

    /// Forgets the handle of a stream that was destroyed. Its work continues.
    void ended(int device, long handle) {
        Key key = new Key(device, known(handle), thread(handle));
        endedHandles.add(key);
        Stream gone = streams.remove(key);
        if (gone != null && recent[recentOf(device, handle)] == gone) {
            recent[recentOf(device, handle)] = null;
        }
        if (gone != null) {
            ended(gone);
        }
    }

    private void ended(Stream gone) {
        gone.hasEnded = true;
        ended.add(gone);
        if (ended.size() > MOST_ENDED) {
            Stream oldest = ended.getFirst();
            oldest.finished = oldest.issued;
        }
        ended.removeIf(StreamClocks::forgets);
    }

    void begins(Capture capture, int device, long handle) {
        stream(device, handle).joins(capture);
    }

    /// Ends the capture that a stream began.
    @Nullable
    Capture ends(int device, long handle) {
        Capture capture = stream(device, handle).capture;
        for (Stream each : streams.values()) {
            if (each.capture == capture) {
                each.joins((Capture) null);
            }
        }
        events.values().removeIf(mark -> mark.capture != null && mark.capture == capture);
        if (capture != null) {
            capture.latest.clear(); // launches need only the uses
        }
        return capture;
    }
}
