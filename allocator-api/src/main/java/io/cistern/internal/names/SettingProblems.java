package io.cistern.internal.names;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// What is wrong with what is set, whoever asks for it or not: a key that is none would else be passed over in
/// silence.
public final class SettingProblems {
    /// More would hide the likely ones.
    private static final int NEAREST_TOLD = 3;

    private SettingProblems() {}

    /// A line for each, for people; none if all is well.
    public static List<String> of(Settings settings) {
        List<String> problems = new ArrayList<>(settings.problems());
        List<String> known = Arrays.stream(Setting.values()).map(Setting::key).toList();
        for (Settings.Unknown one : settings.unknown()) {
            List<String> nearest = NearestName.first(one.key(), known).subList(0, NEAREST_TOLD);
            problems.add(one.source() + ": there is no setting '" + one.key() + "'; known, nearest first: "
                    + String.join(", ", nearest) + ", …");
        }
        return problems;
    }
}
