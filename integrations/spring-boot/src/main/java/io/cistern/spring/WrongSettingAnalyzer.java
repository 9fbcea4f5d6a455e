package io.cistern.spring;

import io.cistern.errors.ConfigurationException;
import java.util.Comparator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/// Explains that an application did not start because of a setting or a missing driver, instead of a stack
/// trace through all beans.
final class WrongSettingAnalyzer extends AbstractFailureAnalyzer<ConfigurationException> {
    /// The start of a problem: `cistern.limit from class path resource [application.properties] - 3:15: `.
    private static final Pattern IN_FILE = Pattern.compile("\\S+ from (.+?) - (\\d+):\\d+: .*");

    /// A setting without a line in a file comes last.
    private record Place(String file, int line) {
        static Place of(String problem) {
            Matcher found = IN_FILE.matcher(problem);
            return found.matches()
                    ? new Place(found.group(1), Integer.parseInt(found.group(2)))
                    : new Place("", Integer.MAX_VALUE);
        }
    }

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, ConfigurationException cause) {
        String problems = String.valueOf(cause.getMessage())
                .lines()
                .sorted(Comparator.comparing(
                        Place::of,
                        Comparator.comparing((Place place) -> place.file().isEmpty())
                                .thenComparing(Place::file)
                                .thenComparingInt(Place::line)))
                .collect(Collectors.joining("\n"));
        return new FailureAnalysis(problems, action(problems, cause), cause);
    }

    private static String action(String problems, ConfigurationException cause) {
        boolean isOfDriver = cause.getCause() instanceof IllegalStateException;
        String driver = isOfDriver ? "Install the driver, or set cistern.driver=simulated to run without a GPU." : "";
        if (isOfDriver && problems.lines().count() == 1) {
            return driver;
        }
        return (problems.contains("add cistern-")
                        ? "Correct the settings above, or add the artifact that they name. "
                        : "Correct the settings above. ")
                .concat(driver)
                .strip();
    }
}
