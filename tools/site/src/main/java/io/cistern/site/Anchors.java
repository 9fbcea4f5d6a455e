package io.cistern.site;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.commonmark.node.Code;
import org.commonmark.node.Heading;
import org.commonmark.node.Node;
import org.commonmark.node.SoftLineBreak;
import org.commonmark.node.Text;

/// Computes the anchors of a page's headings like code hosts do: lower case, without punctuation, `-` for
/// blanks, and a number for a repeated heading.
final class Anchors {
    private Anchors() {}

    /// Returns the anchor of each heading, in the order of the page.
    static Map<Heading, String> of(Node page) {
        Map<Heading, String> anchors = new LinkedHashMap<>();
        Map<String, Integer> times = new HashMap<>();
        for (Heading heading : Nodes.all(Heading.class, page)) {
            String plain = plain(textOf(heading));
            int before = times.merge(plain, 1, Integer::sum) - 1;
            anchors.put(heading, before == 0 ? plain : plain + "-" + before);
        }
        return anchors;
    }

    private static String plain(String heading) {
        return heading.toLowerCase(Locale.ROOT)
                .replaceAll("[^\\p{L}\\p{N} _-]", "")
                .replace(' ', '-');
    }

    /// Returns the words of a heading, with those in code.
    static String textOf(Node node) {
        return switch (node) {
            case Text text -> text.getLiteral();
            case Code code -> code.getLiteral();
            case SoftLineBreak _ -> " ";
            default -> {
                StringBuilder words = new StringBuilder();
                for (Node child = node.getFirstChild(); child != null; child = child.getNext()) {
                    words.append(textOf(child));
                }
                yield words.toString();
            }
        };
    }
}
