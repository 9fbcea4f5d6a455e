package io.cistern.simulated;

import io.cistern.simulated.internal.stream.StreamQueue;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// A piece of work in a graph.
///
/// @param handle its handle
/// @param kind its kind, for comparing graphs
/// @param dependencies the nodes that it follows directly
/// @param work enqueues the node's work on a stream each time the graph runs
record GraphNode(long handle, String kind, List<GraphNode> dependencies, Issue work) {
    interface Issue {
        void to(StreamQueue stream);
    }

    /// Returns whether this node is one of the given nodes, or runs before one of them.
    boolean precedes(Collection<GraphNode> nodes) {
        Deque<GraphNode> open = new ArrayDeque<>(nodes);
        Set<GraphNode> seen = new HashSet<>(nodes);
        while (!open.isEmpty()) {
            GraphNode node = open.removeLast();
            if (node.equals(this)) {
                return true;
            }
            node.dependencies.stream().filter(seen::add).forEach(open::add);
        }
        return false;
    }

    /// A node equals only itself.
    @Override
    @SuppressWarnings("ReferenceEquality")
    public boolean equals(Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(handle);
    }
}
