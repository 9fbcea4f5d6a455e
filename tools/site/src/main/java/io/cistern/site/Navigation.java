package io.cistern.site;

import java.util.ArrayList;
import java.util.List;
import org.commonmark.node.BulletList;
import org.commonmark.node.Heading;
import org.commonmark.node.Link;
import org.commonmark.node.Node;

/// The groups of pages in the menu of each page, as listed in `docs/README.md`.
record Navigation(List<Group> groups) {
    /// Pages under one heading.
    record Group(String title, List<Entry> entries) {}

    /// A page under its short name.
    record Entry(String title, Target target) {}

    static Navigation of(Page list) {
        List<Group> groups = new ArrayList<>();
        for (Node node = list.content().getFirstChild(); node != null; node = node.getNext()) {
            if (node instanceof Heading heading && heading.getNext() instanceof BulletList pages) {
                groups.add(new Group(Anchors.textOf(heading), entries(list, pages)));
            }
        }
        return new Navigation(List.copyOf(groups));
    }

    private static List<Entry> entries(Page list, BulletList pages) {
        return Nodes.all(Link.class, pages).stream()
                .map(link -> new Entry(Anchors.textOf(link), Target.of(list.file(), link.getDestination())))
                .toList();
    }
}
