package io.cistern.pressure;

import java.util.Iterator;
import java.util.concurrent.ConcurrentSkipListSet;

/// The buffers that may leave a place, in the order in which they go: the one of the lowest priority first, of these
/// the one that was used the longest time ago. To find the first of them costs no look at the others.
///
/// Any thread. Who goes through them meets those that come meanwhile if they are behind those that it has met.
///
/// **Invariant.** A buffer changes neither its priority nor its last use while it is in here.
final class SpillOrder implements Iterable<SpillableBuffer> {
    private final ConcurrentSkipListSet<Rank> ranks = new ConcurrentSkipListSet<>();

    /// @param lastUse of no other buffer
    private record Rank(int priority, long lastUse, SpillableBuffer buffer) implements Comparable<Rank> {
        static Rank of(SpillableBuffer buffer) {
            return new Rank(buffer.priority(), buffer.lastUse(), buffer);
        }

        @Override
        public int compareTo(Rank other) {
            int order = Integer.compare(priority, other.priority);
            return order != 0 ? order : Long.compare(lastUse, other.lastUse);
        }
    }

    void add(SpillableBuffer buffer) {
        ranks.add(Rank.of(buffer));
    }

    void remove(SpillableBuffer buffer) {
        ranks.remove(Rank.of(buffer));
    }

    @Override
    public Iterator<SpillableBuffer> iterator() {
        Iterator<Rank> each = ranks.iterator();
        return new Iterator<>() {
            @Override
            public boolean hasNext() {
                return each.hasNext();
            }

            @Override
            public SpillableBuffer next() {
                return each.next().buffer();
            }
        };
    }
}
