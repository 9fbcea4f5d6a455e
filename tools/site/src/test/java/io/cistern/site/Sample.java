package io.cistern.site;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.commonmark.node.FencedCodeBlock;
import org.commonmark.node.HtmlBlock;
import org.commonmark.node.Node;

/// A block of Java of a page, with what a comment in front of it says:
///
/// - `<!-- sample: run -->`, or with the name of a class with `main`: it is run on the simulated GPU, and prints
/// what the block behind `<!-- output -->` says;
/// - `<!-- fragment: REASON -->`: it is not compiled;
/// - `<!-- given: long stream, … -->`: what the statements are given, as the parameters of a method;
/// - nothing: it is compiled.
///
/// @param name of the class that it becomes
/// @param given parameters
/// @param runs the class whose `main` is called, or empty; null if nothing runs
record Sample(
        Page page,
        String name,
        String code,
        String given,
        Optional<String> fragment,
        Optional<String> runs,
        String output) {
    static List<Sample> of(Page page) {
        List<Sample> samples = new ArrayList<>();
        for (FencedCodeBlock block : Nodes.all(FencedCodeBlock.class, page.content())) {
            if (block.getInfo().equals("java")) {
                samples.add(of(page, block, samples.size() + 1));
            }
        }
        return samples;
    }

    private static Sample of(Page page, FencedCodeBlock block, int number) {
        String mark = comment(block.getPrevious());
        return new Sample(
                page,
                "Sample" + number,
                block.getLiteral(),
                after("given: ", mark).orElse(""),
                after("fragment: ", mark),
                after("sample: run", mark).map(String::strip),
                output(block));
    }

    private static String comment(Node node) {
        return node instanceof HtmlBlock html
                ? html.getLiteral()
                        .replaceFirst("^<!--", "")
                        .replaceFirst("-->$", "")
                        .strip()
                : "";
    }

    private static Optional<String> after(String start, String mark) {
        return mark.startsWith(start) ? Optional.of(mark.substring(start.length())) : Optional.empty();
    }

    /// The block behind the next mark for one, if no other Java comes first.
    private static String output(Node block) {
        for (Node node = block.getNext(); node != null; node = node.getNext()) {
            if (comment(node).equals("output") && node.getNext() instanceof FencedCodeBlock expected) {
                return expected.getLiteral();
            }
            if (node instanceof FencedCodeBlock other && other.getInfo().equals("java")) {
                return "";
            }
        }
        return "";
    }

    @Override
    public String toString() {
        return page.file() + " " + name;
    }
}
