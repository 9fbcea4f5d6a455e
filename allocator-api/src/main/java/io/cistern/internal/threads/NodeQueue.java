package io.cistern.internal.threads;

import org.jspecify.annotations.Nullable;

/// A queue between threads whose users supply the nodes, so that adding needs no Java heap.
///
/// **Threads.** Any.
public final class NodeQueue<T> {
    private @Nullable Node<T> first;
    private @Nullable Node<T> last;

    /// Makes an empty queue.
    public NodeQueue() {}

    /// A place in a queue, made in advance. It is in at most one queue at a time, once.
    public static final class Node<T> {
        private final T value;
        private @Nullable Node<T> next;

        /// Makes a node for a value.
        public Node(T value) {
            this.value = value;
        }

        /// Returns the value.
        public T value() {
            return value;
        }
    }

    /// Adds a node that is in no queue.
    public synchronized void add(Node<T> node) {
        if (last == null) {
            first = node;
        } else {
            last.next = node;
        }
        last = node;
    }

    /// Returns the first node without removing it, or null.
    public synchronized @Nullable Node<T> peek() {
        return first;
    }

    /// Removes and returns the first node, or returns null.
    public synchronized @Nullable Node<T> poll() {
        Node<T> taken = first;
        if (taken != null) {
            first = taken.next;
            taken.next = null;
            last = first == null ? null : last;
        }
        return taken;
    }
}
