package io.cistern.site;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.commonmark.node.Heading;
import org.commonmark.node.Image;
import org.commonmark.node.Link;
import org.commonmark.node.Node;

/// A page of the repository.
///
/// @param file its path from the root of the repository, such as `docs/concepts.md`
record Page(Path file, Node content, Map<Heading, String> anchors) {
    static Page read(Path root, Path file) throws IOException {
        Node content = Markdown.parse(root.resolve(file));
        return new Page(file, content, Anchors.of(content));
    }

    String title() {
        return anchors.keySet().stream().findFirst().map(Anchors::textOf).orElse(file.toString());
    }

    @Override
    public String toString() {
        return file.toString();
    }

    /// Returns the targets of its links, then those of its pictures, each in the order of the page.
    List<Target> targets() {
        List<Target> links = Nodes.all(Link.class, content).stream()
                .map(link -> Target.of(file, link.getDestination()))
                .toList();
        List<Target> images = Nodes.all(Image.class, content).stream()
                .map(image -> Target.of(file, image.getDestination()))
                .toList();
        return Stream.concat(links.stream(), images.stream()).toList();
    }
}
