package io.cistern.site;

import java.nio.file.Path;
import java.util.List;
import org.commonmark.node.Code;
import org.commonmark.node.FencedCodeBlock;
import org.commonmark.node.Heading;
import org.commonmark.node.Node;
import org.commonmark.node.Text;

/// The text of all pages for the browser's search: a script, since a page opened from a folder may load no other file.
/// Each heading is an entry `[page, heading, address, text]`.
final class SearchIndex {
    static final Path FILE = Path.of("search-index.js");

    private final StringBuilder entries = new StringBuilder();

    static String of(List<Page> pages) {
        SearchIndex index = new SearchIndex();
        pages.forEach(index::add);
        return "window.searchIndex = [\n" + index.entries + "];\n";
    }

    private void add(Page page) {
        String address = SiteFiles.of(page.file(), false).toString().replace('\\', '/');
        String heading = page.title();
        String anchor = "";
        StringBuilder text = new StringBuilder();
        for (Node node = page.content().getFirstChild(); node != null; node = node.getNext()) {
            if (node instanceof Heading next && !Anchors.textOf(next).equals(page.title())) {
                add(page, heading, address + anchor, text);
                heading = Anchors.textOf(next);
                anchor = "#" + page.anchors().get(next);
                text.setLength(0);
            } else {
                collect(node, text);
            }
        }
        add(page, heading, address + anchor, text);
    }

    private void add(Page page, String heading, String address, StringBuilder text) {
        entries.append('[')
                .append(quoted(page.title()))
                .append(',')
                .append(quoted(heading))
                .append(',')
                .append(quoted(address))
                .append(',')
                .append(quoted(text.toString().replaceAll("\\s+", " ").strip()))
                .append("],\n");
    }

    private static void collect(Node node, StringBuilder text) {
        switch (node) {
            case Text words -> text.append(words.getLiteral()).append(' ');
            case Code code -> text.append(code.getLiteral()).append(' ');
            case FencedCodeBlock block -> text.append(block.getLiteral()).append(' ');
            default -> {
                for (Node child = node.getFirstChild(); child != null; child = child.getNext()) {
                    collect(child, text);
                }
            }
        }
    }

    private static String quoted(String text) {
        return "\""
                + text.replace("\\", "\\\\")
                        .replace("\"", "\\\"")
                        .replace("\n", " ")
                        .replace("</", "<\\/") + "\"";
    }
}
