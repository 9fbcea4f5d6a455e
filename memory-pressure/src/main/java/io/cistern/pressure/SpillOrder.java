package io.cistern.pressure;

import java.util.Iterator;
import java.util.concurrent.ConcurrentSkipListSet;

/// Holds the buffers that may leave a place, in the order in which they leave: lowest priority first, and
/// at equal priority the least recently used first. Finding the first buffer does not look at the others.
///
/// **Threads.** Any. An iteration also visits buffers that are added meanwhile, if they come after those
/// already visited.
final class SpillOrder implements Iterable<SpillableBuffer> {
    private final ConcurrentSkipListSet<Rank> ranks = new ConcurrentSkipListSet<>();

    /// The place of a buffer in an order.
    ///
    /// @param lastUse the buffer's last use; no other buffer has the same
    record Rank(SpillOrder order, int priority, long lastUse, SpillableBuffer buffer) implements Comparable<Rank> {
        /// Adds the buffer to the order, unless it is there already.
        void enter() {
            order.ranks.add(this);
        }

        void leave() {
            order.ranks.remove(this);
        }

        @Override
        public int compareTo(Rank other) {
            int order = Integer.compare(priority, other.priority);
            return order != 0 ? order : Long.compare(lastUse, other.lastUse);
        }
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
