package io.cistern.cli.fit;

import io.cistern.cli.common.TextTable;
import io.cistern.cli.fit.FitText.Verdict;
import io.cistern.cli.report.ShownFit;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;

/// How the program of a file fits, on each of its devices.
///
/// @param judged the allocators that the answer is about
record FileFit(String name, List<Fit> devices, List<String> judged) {
    boolean fits() {
        return devices.stream().allMatch(fit -> fit.fits(judged));
    }

    /// Returns it for people: of each device the facts, and then the verdicts.
    String text() {
        return devices.stream()
                .map(fit -> facts(fit) + "\n"
                        + verdicts(fit).stream()
                                .map(verdict -> TextTable.wrapped(verdict.text(), 0) + "\n")
                                .collect(Collectors.joining()))
                .collect(Collectors.joining("\n"));
    }

    /// Returns it for a page, which shows verdicts first: those that something does not fit before the others.
    ShownFit shown() {
        return new ShownFit(
                devices.stream()
                        .flatMap(fit -> verdicts(fit).stream())
                        .sorted(Comparator.comparing(Verdict::fits))
                        .map(Verdict::text)
                        .toList(),
                devices.stream().map(this::facts).collect(Collectors.joining("\n")),
                devices.stream()
                        .map(fit -> new ShownFit.Leaking((int) fit.recording().ordinals()[0], fit.leaks()))
                        .toList());
    }

    private String facts(Fit fit) {
        return new FitText(fit).facts(name, hasSeveralDevices());
    }

    private List<Verdict> verdicts(Fit fit) {
        return new FitText(fit).verdicts(hasSeveralDevices(), judged);
    }

    private boolean hasSeveralDevices() {
        return devices.size() > 1;
    }
}
