package io.cistern.benchmarks.measure;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// The content of `steps.txt`, which describes its own format.
///
/// @param values values in commands, by name
/// @param builds the commands that build the files that steps need, by file
record Steps(List<Step> all, Map<String, String> values, Map<String, String> builds) {
    /// Marks a command whose exit status does not matter.
    static final String MAY_FAIL = "- ";

    private static final Pattern CHOICE = Pattern.compile("\\[([^\\[\\]]*\\|[^\\[\\]]*)]");

    /// One measurement.
    ///
    /// @param seconds the limit for all commands together
    /// @param needs the equipment that the machine must have
    record Step(String name, int seconds, List<String> needs, String what, List<String> commands) {}

    static Steps read(boolean quick) throws IOException {
        Steps steps = new Steps(new ArrayList<>(), new LinkedHashMap<>(), new LinkedHashMap<>());
        try (InputStream in = Objects.requireNonNull(Steps.class.getResourceAsStream("steps.txt"))) {
            String last = "";
            String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
            for (String line :
                    text.lines().filter(line -> !line.startsWith("#")).toList()) {
                String[] cells = line.split(" *\\| *", 0);
                String[] value = line.split(" = ", 0);
                if (line.startsWith(" ")) {
                    steps.command(last, line.strip());
                } else if (value.length == 3) {
                    steps.values.put(value[0], value[quick ? 2 : 1]);
                } else if (cells.length == 4) {
                    List<String> needs = cells[2].isEmpty() ? List.of() : List.of(cells[2].split(" ", 0));
                    steps.all.add(new Step(cells[0], Integer.parseInt(cells[1]), needs, cells[3], new ArrayList<>()));
                }
                last = line.startsWith(" ") ? last : cells[0];
            }
        }
        return steps;
    }

    private void command(String of, String command) {
        if (all.getLast().name().equals(of)) {
            choices(command).forEach(all.getLast().commands()::add);
        } else {
            builds.put(of, command);
        }
    }

    private static Stream<String> choices(String command) {
        Matcher choice = CHOICE.matcher(command);
        return !choice.find()
                ? Stream.of(command)
                : Stream.of(choice.group(1).split("\\|", -1))
                        .flatMap(one ->
                                choices(command.substring(0, choice.start()) + one + command.substring(choice.end())));
    }
}
