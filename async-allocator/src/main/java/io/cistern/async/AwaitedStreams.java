package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// Holds the streams that use blocks of one device, and a queue of the streams that freed blocks wait for.
/// The queue begins with the stream that was checked least recently. Guarded by the monitor of
/// [DeferredFrees].
///
/// Only [#named] needs Java heap.
final class AwaitedStreams {
    private @Nullable UsingStream all;
    private @Nullable UsingStream first;
    private @Nullable UsingStream last;
    private int count;

    /// Returns the stream of a handle, and adds it if it is new.
    UsingStream named(long stream) {
        UsingStream found = find(stream);
        if (found == null) {
            found = new UsingStream(stream);
            found.next = all;
            all = found;
        }
        return found;
    }

    /// Returns the stream of a handle if it uses or used blocks; forgets the streams that no longer do.
    @Nullable
    UsingStream find(long stream) {
        UsingStream found = null;
        UsingStream before = null;
        for (UsingStream each = all; each != null; each = each.next) {
            if (each.stream == stream) {
                found = each;
            }
            if (each.isNeeded() || each == found) {
                before = each;
            } else if (before == null) {
                all = each.next;
            } else {
                before.next = each.next;
            }
        }
        return found;
    }

    /// Returns the length of the queue.
    int count() {
        return count;
    }

    /// Returns the first stream of the queue; the others follow by [UsingStream#nextAwaited].
    @Nullable
    UsingStream first() {
        return first;
    }

    /// Appends a stream to the queue if blocks wait for it and it is not there yet.
    void queue(UsingStream stream) {
        if (stream.isAwaited || stream.first == null) {
            return;
        }
        if (last == null) {
            first = stream;
        } else {
            last.nextAwaited = stream;
        }
        last = stream;
        stream.isAwaited = true;
        count++;
    }

    /// Moves the first stream to the end of the queue, or removes it if no block waits for it any more.
    void rotate() {
        UsingStream looked = first;
        if (looked == null) {
            return;
        }
        first = looked.nextAwaited;
        last = first == null ? null : last;
        looked.nextAwaited = null;
        looked.isAwaited = false;
        count--;
        queue(looked);
    }
}
