package io.cistern.internal.leaks;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.diagnostics.LeakLevel;
import java.util.Locale;
import java.util.Optional;

/// The [LeakLevel] that setting `cistern.leaks` names.
public final class ConfiguredLeakLevel {
    private ConfiguredLeakLevel() {}

    /// Returns the level that the settings name. An unknown name is `off`, with a warning: a diagnostic never throws.
    public static LeakLevel in(Settings settings) {
        Optional<Settings.Value> set = settings.get(Setting.LEAKS);
        String name = set.map(Settings.Value::text).orElse("off");
        for (LeakLevel level : LeakLevel.values()) {
            if (level.name().equals(name.toUpperCase(Locale.ROOT))) {
                return level;
            }
        }
        System.getLogger(LeakLevel.class.getName())
                .log(
                        System.Logger.Level.WARNING,
                        "{0} is ''{1}'', which is none of off, sampled, sites, all; taken as off",
                        set.orElseThrow().source(),
                        name);
        return LeakLevel.OFF;
    }
}
