package io.cistern.cli.fit;

import io.cistern.cli.common.TextTable;
import io.cistern.cli.report.ShownFit;
import io.cistern.cli.report.ShownFit.Answer;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// How the program of a file fits, on each of its devices.
///
/// @param judged the allocators that the answer is about
record FileFit(String name, List<Fit> devices, List<String> judged) {
    boolean fits() {
        return devices.stream().allMatch(fit -> fit.fits(judged));
    }

    /// Returns it for people: of each device the facts, and then the verdicts and their reasons.
    String text() {
        return answers(devices.stream()).map(FileFit::text).collect(Collectors.joining("\n"));
    }

    /// Returns it for a page: devices on which something does not fit first, then those on which a request was refused.
    ShownFit shown() {
        Stream<Fit> refusedFirst = devices.stream()
                .sorted(Comparator.comparing(fit -> fit.refusal().isEmpty()));
        return new ShownFit(
                answers(refusedFirst).sorted(Comparator.comparing(Answer::fits)).toList(),
                devices.stream()
                        .map(fit -> new ShownFit.Leaking((int) fit.recording().ordinals()[0], fit.leaks()))
                        .toList());
    }

    private Stream<Answer> answers(Stream<Fit> fits) {
        return fits.map(fit -> new FitText(fit).answer(name, devices.size() > 1, judged));
    }

    private static String text(Answer answer) {
        StringBuilder text = new StringBuilder(TextTable.wrapped(answer.heading(), 2)).append('\n');
        for (ShownFit.Fact fact : answer.facts()) {
            String line = String.format(Locale.ROOT, "  %-22s%s", fact.name(), fact.text());
            text.append(TextTable.wrapped(line, 24)).append('\n');
        }
        text.append('\n')
                .append(TextTable.format(answer.columns(), answer.rows(), 1))
                .append('\n');
        answer.notes().forEach(line -> text.append(TextTable.wrapped(line, 2)).append('\n'));
        text.append('\n');
        answer.verdicts()
                .forEach(line -> text.append(TextTable.wrapped(line, 0)).append('\n'));
        answer.reasons().forEach(line -> text.append(TextTable.wrapped(line, 2)).append('\n'));
        return text.toString();
    }
}
