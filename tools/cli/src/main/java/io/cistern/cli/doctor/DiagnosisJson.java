package io.cistern.cli.doctor;

import static io.cistern.cli.common.ResultWriter.object;

import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Support;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Turns a [Diagnosis] into JSON for programs.
final class DiagnosisJson {
    private DiagnosisJson() {}

    static Map<String, @Nullable Object> of(Diagnosis diagnosis, String version) {
        return object(
                "cistern", version,
                "java", java(diagnosis),
                "drivers",
                        diagnosis.drivers().stream()
                                .map(driver -> answer(object("name", driver.name()), driver.support()))
                                .toList(),
                "driver", driver(diagnosis),
                "devices",
                        diagnosis.capabilities().devices().stream()
                                .map(device -> device(device, diagnosis.pools().get(device.device())))
                                .toList(),
                "providers",
                        diagnosis.providers().stream()
                                .map(DiagnosisJson::provider)
                                .toList(),
                "settings",
                        diagnosis.settings().stream()
                                .map(one -> object(
                                        "key",
                                        one.key(),
                                        "value",
                                        one.value(),
                                        "source",
                                        one.source(),
                                        "followed",
                                        one.followed()))
                                .toList(),
                "problems", diagnosis.problems(),
                "current", object("allocator", diagnosis.current().orElse(null), "reason", diagnosis.currentReason()));
    }

    private static Map<String, @Nullable Object> java(Diagnosis diagnosis) {
        return object(
                "version", diagnosis.jdk(),
                "home", diagnosis.jdkHome(),
                "nativeAccess", answer(object(), diagnosis.nativeAccess()));
    }

    private static Map<String, @Nullable Object> driver(Diagnosis diagnosis) {
        return object(
                "description", diagnosis.driver(),
                "simulated", diagnosis.simulated(),
                "notice", diagnosis.driverNotice().orElse(null),
                "version", diagnosis.capabilities().version(),
                "environment", diagnosis.capabilities().environment());
    }

    private static Map<String, @Nullable Object> device(DeviceCapabilities device, PoolDiagnosis pools) {
        List<Map<String, @Nullable Object>> features = new ArrayList<>();
        Diagnosis.features(device).forEach((name, support) -> features.add(answer(object("name", name), support)));
        return object(
                "device", device.device(),
                "name", device.name(),
                "uuid", device.uuid(),
                "totalBytes", device.totalBytes(),
                "computeCapability", device.computeCapability() / 10 + "." + device.computeCapability() % 10,
                "granularity", device.granularity(),
                "features", features,
                "defaultPool", pool(pools));
    }

    private static Map<String, @Nullable Object> pool(PoolDiagnosis pools) {
        Map<String, @Nullable Object> fields = object("current", pools.current());
        pools.attributes().forEach((attribute, value) -> fields.put(camelCase(attribute), value));
        fields.put("handleTypes", pools.handleTypes().stream().map(Enum::name).toList());
        return answer(fields, pools.support());
    }

    private static String camelCase(PoolAttribute attribute) {
        Matcher underscore = Pattern.compile("_(.)").matcher(attribute.name().toLowerCase(Locale.ROOT));
        return underscore.replaceAll(match -> match.group(1).toUpperCase(Locale.ROOT));
    }

    private static Map<String, @Nullable Object> provider(Diagnosis.Provider provider) {
        return answer(
                object(
                        "kind", provider.entry().kind().name().toLowerCase(Locale.ROOT),
                        "name", provider.entry().name(),
                        "origin", provider.entry().origin(),
                        "priority", provider.entry().priority()),
                provider.support());
    }

    private static Map<String, @Nullable Object> answer(Map<String, @Nullable Object> fields, Support support) {
        fields.put("available", support.supported());
        fields.put("reason", support.supported() ? null : support.reason());
        return fields;
    }
}
