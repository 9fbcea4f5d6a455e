package io.cistern.cli.trace;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// The sites of a recording's call stacks, each once: of a stack, the innermost line of the program's own code.
///
/// @param names by number; one is empty, for stacks that are not known
/// @param numbers by the number of a stack
@SuppressWarnings("ArrayRecordComponent") // As in a recording.
public record Sites(List<String> names, int[] numbers) {
    /// Finds the sites of all stacks.
    public static Sites of(CallStacks stacks) {
        List<String> names = new ArrayList<>();
        Map<String, Integer> known = new HashMap<>();
        int[] numbers = new int[stacks.stacks().size()];
        for (int stack = 0; stack < numbers.length; stack++) {
            numbers[stack] = known.computeIfAbsent(stacks.site(stack), site -> {
                names.add(site);
                return names.size() - 1;
            });
        }
        return new Sites(names, numbers);
    }
}
