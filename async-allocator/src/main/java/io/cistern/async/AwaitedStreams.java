package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// The streams that use blocks of one device, and a queue of those that freed blocks wait for: the one looked at
/// longest ago is first. Guarded by the monitor of [DeferredFrees].
///
/// Only [#named] needs Java heap.
final class AwaitedStreams {
    private @Nullable UsingStream all;
    private @Nullable UsingStream first;
    private @Nullable UsingStream last;
    private int count;

    /// The stream of a handle, which exists.
    UsingStream named(long stream) {
        UsingStream found = find(stream);
        if (found == null) {
            found = new UsingStream(stream);
            found.next = all;
            all = found;
        }
        return found;
    }

    /// The stream of a handle if it uses or used blocks; forgets those that do not any more.
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

    /// How many are in the queue.
    int count() {
        return count;
    }

    /// The first of the queue; the others follow by [UsingStream#nextAwaited].
    @Nullable
    UsingStream first() {
        return first;
    }

    /// Puts a stream last, if blocks wait for it and it is not in the queue.
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

    /// Puts the first one last, or out of the queue if no block waits for it any more.
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
