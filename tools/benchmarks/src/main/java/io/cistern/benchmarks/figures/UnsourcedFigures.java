package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/// Finds what looks measured and stands outside the blocks that are made from raw output: a number with a unit of time
/// or rate, in digits or in words, a factor, a percentage, a table's cell with a fraction, two cells of numbers side by
/// side. Constants of the program are code, in backticks.
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
    private static final Pattern PART = Pattern.compile("^(?=## )", Pattern.MULTILINE);
    /// The paragraph of a notebook's part that names machine, date and raw output.
    private static final Pattern SOURCE =
            Pattern.compile("^Source: (?:(?!\n\n).)*", Pattern.MULTILINE | Pattern.DOTALL);
    private static final Pattern PLACE =
            Pattern.compile("(?:H[12]00|development\\s+machine|simulated\\s+GPU), 20\\d\\d-\\d\\d-\\d\\d"
                    + "(?: to 20\\d\\d-\\d\\d-\\d\\d)? \\((?:\\[raw\\]|raw output not kept)");
    private static final Pattern FENCED = Pattern.compile("```.*?```", Pattern.DOTALL);

    private UnsourcedFigures() {}

    /// The lines of a page that have some, with their numbers.
    static List<String> in(String page) {
        String outside = FENCED.matcher(Pages.outside(page))
                .replaceAll(block -> "\n".repeat((int) block.group().lines().count() - 1));
        List<String> lines = CODE.matcher(outside).replaceAll("").lines().toList();
        List<String> found = new ArrayList<>();
        for (int i = 0; i < lines.size(); i++) {
            if (looksMeasured(lines.get(i))) {
                found.add(i + 1 + ": " + lines.get(i).strip());
            }
        }
        return found;
    }

    /// The headings of a notebook's parts that have some and no paragraph that says where they are from.
    static List<String> partsWithoutSource(String notebook) {
        return PART.splitAsStream(notebook)
                .filter(part -> !in(part).isEmpty() && sources(part).isEmpty())
                .map(part -> part.lines().findFirst().orElse(""))
                .toList();
    }

    /// The paragraphs of a notebook that say where figures are from.
    static List<String> sources(String notebook) {
        return SOURCE.matcher(notebook)
                .results()
                .map(MatchResult::group)
                .filter(source -> PLACE.matcher(source).find())
                .toList();
    }

    private static boolean looksMeasured(String line) {
        return WITH_UNIT.matcher(line).find()
                || IN_WORDS.matcher(line).find()
                || CELL_WITH_FRACTION.matcher(line).find()
                || CELLS_OF_NUMBERS.matcher(line).find();
    }
}
