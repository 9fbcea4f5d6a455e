package io.cistern.cli.doctor;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.TextTable;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.Support;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine.Help.Ansi;

/// Formats a [Diagnosis] for people.
final class DiagnosisText {
    private final StringBuilder text = new StringBuilder();

    private DiagnosisText() {}

    /// Returns the answer on one screen: problems, the allocator that is current, plug-ins, devices, what was set, and
    /// what can't be used. The text ends in a newline.
    static String brief(Diagnosis diagnosis) {
        DiagnosisText text = new DiagnosisText();
        text.problems(diagnosis);
        text.current(diagnosis);
        text.plugins(diagnosis);
        diagnosis.capabilities().devices().forEach(text::deviceInBrief);
        text.heading("Driver");
        text.line(diagnosis.driver());
        text.unusable(diagnosis);
        text.settings(diagnosis.settings().stream()
                .filter(one -> !one.source().equals(Diagnosis.DEFAULT))
                .toList());
        text.text.append("\nMore with --verbose: Java, features, allocators and sources, all settings.\n");
        return text.text.toString();
    }

    /// Returns all findings, the problems first. The text ends in a newline.
    static String all(Diagnosis diagnosis) {
        DiagnosisText all = new DiagnosisText();
        all.problems(diagnosis);
        all.current(diagnosis);
        all.java(diagnosis);
        all.driver(diagnosis);
        diagnosis
                .capabilities()
                .devices()
                .forEach(device -> all.device(device, diagnosis.pools().get(device.device())));
        all.providers("Allocators", Catalog.Kind.ALLOCATOR, diagnosis.providers());
        all.providers("Segment sources", Catalog.Kind.SOURCE, diagnosis.providers());
        all.settings(diagnosis.settings());
        return all.text.toString();
    }

    private void java(Diagnosis diagnosis) {
        heading("Java");
        line(diagnosis.jdk() + ", " + diagnosis.jdkHome());
        answer("native access", 16, diagnosis.nativeAccess());
    }

    private void driver(Diagnosis diagnosis) {
        heading("Driver");
        diagnosis.drivers().forEach(driver -> answer(driver.name(), 16, driver.support()));
        line("in use: " + diagnosis.driver());
        diagnosis.driverNotice().ifPresent(this::line);
        diagnosis.capabilities().environment().forEach(this::line);
    }

    private void title(DeviceCapabilities device) {
        heading("Device " + device.device());
        line(String.format(
                Locale.ROOT,
                "%s, %s, compute capability %d.%d",
                device.name(),
                ByteSize.format(device.totalBytes()),
                device.computeCapability() / 10,
                device.computeCapability() % 10));
    }

    private void deviceInBrief(DeviceCapabilities device) {
        title(device);
        Map<String, Support> lacking = Diagnosis.features(device);
        lacking.values().removeIf(Support::supported);
        if (!lacking.isEmpty()) {
            line("lacks " + String.join(", ", lacking.keySet()));
        }
    }

    private void device(DeviceCapabilities device, PoolDiagnosis pools) {
        title(device);
        line(device.uuid());
        Diagnosis.features(device).forEach((name, support) -> answer(name, 22, support));
        line("default pool           " + pools.text());
        line("    reuse policies: " + pools.policies() + "; exportable as: " + pools.exports());
    }

    private void providers(String heading, Catalog.Kind kind, List<Diagnosis.Provider> providers) {
        heading(heading);
        for (Diagnosis.Provider provider : providers) {
            Catalog.Entry entry = provider.entry();
            if (entry.kind() == kind) {
                answer(entry.name(), 16, provider.support());
                String priority = kind == Catalog.Kind.ALLOCATOR ? "priority " + entry.priority() + ", " : "";
                line("    " + priority + "from " + entry.origin());
            }
        }
    }

    private void plugins(Diagnosis diagnosis) {
        List<Catalog.Entry> loaded = diagnosis.providers().stream()
                .map(Diagnosis.Provider::entry)
                .filter(entry -> entry.problem().isEmpty() && Plugins.isPlugin(entry))
                .toList();
        if (!loaded.isEmpty()) {
            heading("Plug-ins");
            loaded.forEach(entry -> line(entry.name() + ": loaded from " + entry.origin()));
        }
    }

    private void unusable(Diagnosis diagnosis) {
        List<Diagnosis.Provider> unusable = diagnosis.providers().stream()
                .filter(provider -> !provider.support().supported())
                .toList();
        if (!unusable.isEmpty()) {
            heading("Can't be used here");
            unusable.forEach(provider -> answer(provider.entry().name(), 16, provider.support()));
        }
    }

    private void settings(List<Diagnosis.SettingValue> settings) {
        if (!settings.isEmpty()) {
            heading("Settings");
        }
        for (Diagnosis.SettingValue one : settings) {
            line(one.key() + " ".repeat(Math.max(1, 28 - one.key().length())) + value(one) + "  (" + one.source()
                    + ")");
        }
    }

    private static String value(Diagnosis.SettingValue one) {
        return one.followed() ? one.value() : "'" + one.value() + "', which can't be used";
    }

    private void current(Diagnosis diagnosis) {
        heading("Current allocator");
        line(diagnosis.current().orElse("none") + ": " + diagnosis.currentReason());
    }

    private void problems(Diagnosis diagnosis) {
        heading(diagnosis.problems().isEmpty() ? "No problems" : "Problems");
        diagnosis.problems().forEach(this::line);
    }

    private void heading(String heading) {
        text.append(text.isEmpty() ? "" : "\n")
                .append(Ansi.AUTO.string("@|bold " + heading + "|@"))
                .append('\n');
    }

    private void answer(String name, int width, Support support) {
        String padding = " ".repeat(Math.max(0, width - name.length()));
        line(name + padding + (support.supported() ? " yes" : " no: " + support.reason()));
    }

    private void line(String line) {
        text.append(TextTable.wrapped("  " + line, 6)).append('\n');
    }
}
