package io.cistern.site;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.commonmark.Extension;
import org.commonmark.ext.gfm.tables.TablesExtension;
import org.commonmark.node.Node;
import org.commonmark.parser.Parser;
import org.commonmark.renderer.text.TextContentRenderer;

/// Parses Markdown as the pages use it: CommonMark with tables.
final class Markdown {
    static final List<Extension> EXTENSIONS = List.of(TablesExtension.create());

    private static final Parser PARSER = Parser.builder().extensions(EXTENSIONS).build();
    private static final TextContentRenderer TEXT =
            TextContentRenderer.builder().extensions(EXTENSIONS).build();

    private Markdown() {}

    static Node parse(Path file) throws IOException {
        return PARSER.parse(Files.readString(file));
    }

    static Node parse(String text) {
        return PARSER.parse(text);
    }

    /// Returns the visible text of a node, without markup.
    static String textOf(Node node) {
        return TEXT.render(node).replace("\"", "").strip();
    }
}
