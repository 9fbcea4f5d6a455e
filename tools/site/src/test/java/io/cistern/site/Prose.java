package io.cistern.site;

import java.util.ArrayList;
import java.util.List;
import org.commonmark.ext.gfm.tables.TableCell;
import org.commonmark.node.Heading;
import org.commonmark.node.Image;
import org.commonmark.node.Link;
import org.commonmark.node.Node;
import org.commonmark.node.Paragraph;
import org.commonmark.node.SoftLineBreak;
import org.commonmark.node.Text;

/// What a page says in words: paragraphs, headings and cells, without code and HTML.
final class Prose {
    private static final String CODE = "¤";

    private Prose() {}

    /// Returns the pieces of text of a page, code as a sign.
    static List<String> of(Node page) {
        List<String> pieces = new ArrayList<>();
        Nodes.all(Paragraph.class, page).forEach(node -> pieces.add(words(node)));
        Nodes.all(Heading.class, page).forEach(node -> pieces.add(words(node)));
        Nodes.all(TableCell.class, page).forEach(node -> pieces.add(words(node)));
        return pieces;
    }

    private static String words(Node node) {
        return switch (node) {
            case Text text -> text.getLiteral();
            case SoftLineBreak _ -> " ";
            case Link link when isAddress(link) -> CODE;
            case Image _ -> children(node) + ". ";
            default -> node.getFirstChild() == null ? CODE : children(node);
        };
    }

    private static boolean isAddress(Link link) {
        return children(link).contains("://");
    }

    private static String children(Node node) {
        StringBuilder words = new StringBuilder();
        for (Node child = node.getFirstChild(); child != null; child = child.getNext()) {
            words.append(words(child));
        }
        return words.toString();
    }
}
