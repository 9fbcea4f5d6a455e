package io.cistern.site;

import java.util.ArrayList;
import java.util.List;
import org.commonmark.node.Node;

/// Searches a tree of Markdown nodes.
final class Nodes {
    private Nodes() {}

    /// Returns all nodes of a kind below a node, in the order of the text.
    static <T extends Node> List<T> all(Class<T> kind, Node root) {
        List<T> found = new ArrayList<>();
        collect(kind, root, found);
        return found;
    }

    private static <T extends Node> void collect(Class<T> kind, Node at, List<T> found) {
        for (Node child = at.getFirstChild(); child != null; child = child.getNext()) {
            if (kind.isInstance(child)) {
                found.add(kind.cast(child));
            }
            collect(kind, child, found);
        }
    }
}
