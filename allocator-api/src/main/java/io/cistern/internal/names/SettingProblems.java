package io.cistern.internal.names;

import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Finds problems in the settings, including those that no code reads. Otherwise a mistyped key would go
/// unnoticed.
public final class SettingProblems {
    /// The prefix of settings that define an allocator.
    private static final String DEFINE = "cistern.define.";

    private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

    private SettingProblems() {}

    /// Returns the problems not yet reported in this process, including settings for devices that do not
    /// exist.
    public static List<String> untold(Settings settings, int deviceCount) {
        List<String> problems = new ArrayList<>(of(settings));
        problems.addAll(ofAbsentDevices(settings, deviceCount));
        problems.removeIf(problem -> !TOLD.add(problem));
        return problems;
    }

    /// Returns a readable line for each problem; none if all is well.
    public static List<String> of(Settings settings) {
        List<String> problems = ofKeys(settings);
        for (Settings.Value set : settings.all()) {
            try {
                set.check();
            } catch (IllegalSettingException e) {
                problems.add(String.valueOf(e.getMessage()));
            }
        }
        return problems;
    }

    private static List<String> ofKeys(Settings settings) {
        List<String> problems = new ArrayList<>(settings.problems());
        for (Settings.Unknown one : settings.unknown()) {
            problems.add(IllegalSettingException.line(
                    one.source(),
                    "there is no setting '" + one.key() + "'; known, nearest first: "
                            + NearestName.listed(one.key(), known(one))
                            + (one.key().startsWith(DEFINE) ? "; NAME " + Names.RULE : "")));
        }
        return problems;
    }

    /// Returns a line for each problem, so that a user does not have to start once for each.
    ///
    /// @param first what stopped the program, or null
    /// @param ofSpec returns what is wrong with a spec
    public static String all(
            Settings settings, @Nullable RuntimeException first, Function<String, List<String>> ofSpec) {
        String told = first == null ? "" : String.valueOf(first.getMessage());
        List<String> ofFirst = new ArrayList<>();
        List<String> others = ofKeys(settings);
        for (Settings.Value set : settings.all()) {
            (told.startsWith(set.source() + ": ") ? ofFirst : others).addAll(of(set, ofSpec));
        }
        boolean isListed = !ofFirst.isEmpty() || others.stream().anyMatch(told::endsWith);
        Set<String> all = new LinkedHashSet<>();
        if (first != null && !isListed) {
            all.add(told);
        }
        all.addAll(ofFirst);
        all.addAll(others);
        return String.join("\n", all);
    }

    private static List<String> of(Settings.Value set, Function<String, List<String>> ofSpec) {
        try {
            set.check();
        } catch (IllegalSettingException e) {
            return List.of(String.valueOf(e.getMessage()));
        }
        return switch (set.setting()) {
            case ALLOCATOR, DEVICE_ALLOCATOR, DEFINE ->
                ofSpec.apply(set.text()).stream()
                        .map(what -> IllegalSettingException.line(set.source(), what))
                        .toList();
            default -> List.of();
        };
    }

    private static List<String> known(Settings.Unknown one) {
        return Arrays.stream(Setting.values())
                .map(one.isVariable() ? Setting::variable : Setting::key)
                .toList();
    }

    /// Returns a line for each setting of a device that does not exist. Such a setting does no harm, since one
    /// file may serve several machines.
    public static List<String> ofAbsentDevices(Settings settings, int deviceCount) {
        List<String> problems = new ArrayList<>();
        for (Settings.Value set : settings.all()) {
            if (set.setting().isOfDevice() && Integer.parseInt(set.part()) >= deviceCount) {
                problems.add(set.source() + ": there is no device " + set.part() + "; this process sees "
                        + Devices.all(deviceCount));
            }
        }
        return problems;
    }
}
