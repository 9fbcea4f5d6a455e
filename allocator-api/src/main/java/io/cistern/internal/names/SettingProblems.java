package io.cistern.internal.names;

import io.cistern.cuda.CisternException;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Finds problems of the settings, also of those that no code reads. Otherwise nobody would hear of a mistyped
/// key.
public final class SettingProblems {
    private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

    private SettingProblems() {}

    /// Returns the problems that this process did not yet hear of, including settings for devices that do not
    /// exist.
    public static List<String> untold(Settings settings, int deviceCount) {
        List<String> problems = new ArrayList<>(of(settings));
        problems.addAll(ofAbsentDevices(settings, deviceCount));
        problems.removeIf(problem -> !TOLD.add(problem));
        return problems;
    }

    /// Returns a line for each problem, for people; none if all is well.
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
                            + NearestName.listed(one.key(), known(one))));
        }
        return problems;
    }

    /// Returns a line for each problem, so that a user does not have to start once for each.
    ///
    /// @param first what stopped the program, if it is not one of [#of]
    /// @param requireAllocator throws a [CisternException] if a spec names no allocator
    public static String all(Settings settings, @Nullable RuntimeException first, Consumer<String> requireAllocator) {
        List<String> problems = new ArrayList<>();
        if (first != null) {
            problems.add(String.valueOf(first.getMessage()));
        }
        problems.addAll(ofKeys(settings));
        for (Settings.Value set : settings.all()) {
            try {
                set.check();
                if (set.setting() == Setting.ALLOCATOR || set.setting() == Setting.DEVICE_ALLOCATOR) {
                    requireAllocator.accept(set.text());
                }
            } catch (IllegalSettingException e) {
                problems.add(String.valueOf(e.getMessage()));
            } catch (CisternException e) {
                problems.add(IllegalSettingException.line(set.source(), e.getMessage()));
            }
        }
        return String.join("\n", new LinkedHashSet<>(problems));
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
