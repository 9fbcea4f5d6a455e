package io.cistern.cli.trace;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// The call stacks of a recording, each once, by number. [#NONE] is the empty one: nothing is known.
///
/// A frame is a line as `step(/home/me/train.py:12)`.
public final class CallStacks {
    public static final int NONE = 0;

    /// Parts of the names of files that hold a library's code or an interpreter's.
    private static final List<String> LIBRARIES =
            List.of("/site-packages/", "/dist-packages/", "/lib/python", "/torch/", "<frozen ", "<eval_with_key>");

    private final List<String> frames = new ArrayList<>();
    private final Map<String, Integer> frameNumbers = new HashMap<>();
    private final List<List<Integer>> stacks = new ArrayList<>();
    private final Map<List<Integer>, Integer> numbers = new HashMap<>();

    public CallStacks() {
        of(List.of());
    }

    /// Returns the number of a stack.
    ///
    /// @param lines its frames, innermost first
    public int of(List<String> lines) {
        return ofFrames(lines.stream().map(this::frame).toList());
    }

    private int frame(String line) {
        return frameNumbers.computeIfAbsent(line, _ -> {
            frames.add(line);
            return frames.size() - 1;
        });
    }

    private int ofFrames(List<Integer> stack) {
        return numbers.computeIfAbsent(stack, _ -> {
            stacks.add(stack);
            return stacks.size() - 1;
        });
    }

    /// Returns the frames of a stack, innermost first.
    public List<String> lines(int stack) {
        return stacks.get(stack).stream().map(frames::get).toList();
    }

    /// Returns the innermost frame of the program's own code; without one, the innermost of Python or of all;
    /// empty for no stack.
    public String site(int stack) {
        List<String> lines = lines(stack);
        return lines.stream()
                .filter(CallStacks::isOwn)
                .findFirst()
                .or(() -> lines.stream().filter(line -> line.contains(".py:")).findFirst())
                .orElse(lines.isEmpty() ? "" : lines.getFirst());
    }

    /// The sites of all stacks, each once.
    ///
    /// @param names by number; one is empty, for stacks that are not known
    /// @param numbers by the number of a stack
    @SuppressWarnings("ArrayRecordComponent") // As in a recording.
    public record Sites(List<String> names, int[] numbers) {}

    public Sites sites() {
        Map<String, Integer> known = new LinkedHashMap<>();
        int[] numbers = IntStream.range(0, stacks.size())
                .map(stack -> known.computeIfAbsent(site(stack), _ -> known.size()))
                .toArray();
        return new Sites(new ArrayList<>(known.keySet()), numbers);
    }

    /// Returns whether a frame is neither a library's nor native code.
    public static boolean isOwn(String line) {
        String file = line.substring(line.indexOf('(') + 1);
        boolean isPython = file.contains(".py:") || file.startsWith("<");
        return isPython && LIBRARIES.stream().noneMatch(file::contains);
    }

    /// Returns a site in short: `train.py:12 (step)`; without a file, `at::empty`.
    public static String shortened(String site) {
        int open = site.indexOf('(');
        int slash = site.lastIndexOf('/');
        if (site.endsWith("(??:0)")) {
            return site.substring(0, open);
        }
        return open < 0 || !site.endsWith(")") || site.indexOf(':', open) < 0
                ? site
                : site.substring(Math.max(open, slash) + 1, site.length() - 1) + " (" + site.substring(0, open) + ")";
    }

    /// Returns all frames by their numbers.
    public List<String> frames() {
        return frames;
    }

    /// Returns all stacks by their numbers, each the numbers of its frames, innermost first.
    public List<List<Integer>> stacks() {
        return stacks;
    }
}
