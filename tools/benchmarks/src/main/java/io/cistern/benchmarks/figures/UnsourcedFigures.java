package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Finds figures that look measured and stand outside the blocks made from raw output: a number with a unit of
/// time or rate, in digits or in words, a factor, a percentage, a table cell with a fraction, two cells of
/// numbers side by side. Constants of the program stand in backticks, which it ignores. A paragraph of a decision may
/// tell figures beside a link to their raw output.
final class UnsourcedFigures {
    private static final String NUMBER = "(?<![\\w.-])\\d[\\d,.]*";
    private static final Pattern WITH_UNIT = Pattern.compile(
            NUMBER
                    + "\\s?(?:ns|µs|us|ms|s|seconds?|minutes?|×|%|[GMTk]i?B/s|million|M/s|times (?:as|more|less|its|faster|slower))(?![\\w/])");
    private static final Pattern IN_WORDS = Pattern.compile(
            "(?i)\\b(?:an?|half an?|one|two|three|some|(?:a )?few|several) (?:nano|micro|milli)seconds?\\b");
    private static final String FIGURES = "[-+−*\\d.,·±;\\s]*";
    private static final Pattern CELL_WITH_FRACTION = Pattern.compile("\\|" + FIGURES + "\\d\\.\\d" + FIGURES + "\\|");
    private static final Pattern CELLS_OF_NUMBERS = Pattern.compile("\\|\\s*\\d[\\d,]+\\s*\\|\\s*\\d[\\d,]+\\s*\\|");
    private static final Pattern CODE = Pattern.compile("`[^`\n]*`|\\]\\([^)]*\\)");
    private static final Pattern FENCED = Pattern.compile("```.*?```", Pattern.DOTALL);

    private UnsourcedFigures() {}

    /// Returns the lines of a page with such figures, each with its number.
    static List<String> in(String page) {
        String outside = Stream.of(FENCED.matcher(Pages.outside(page))
                        .replaceAll(block -> emptied(block.group()))
                        .split("\n\n", -1))
                .map(paragraph -> paragraph.contains("](../measurements/") ? emptied(paragraph) : paragraph)
                .collect(Collectors.joining("\n\n"));
        List<String> lines = CODE.matcher(outside).replaceAll("").lines().toList();
        List<String> found = new ArrayList<>();
        for (int i = 0; i < lines.size(); i++) {
            if (looksMeasured(lines.get(i))) {
                found.add(i + 1 + ": " + lines.get(i).strip());
            }
        }
        return found;
    }

    private static String emptied(String text) {
        return text.replaceAll("[^\n]+", "");
    }

    private static boolean looksMeasured(String line) {
        return WITH_UNIT.matcher(line).find()
                || IN_WORDS.matcher(line).find()
                || CELL_WITH_FRACTION.matcher(line).find()
                || CELLS_OF_NUMBERS.matcher(line).find();
    }
}
