package io.cistern.cli.fit;

import io.cistern.cli.trace.Recorder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Finds the settings of a recorded program's PyTorch allocator that the models of it do not follow.
final class UnfollowedSettings {
    /// The settings as the program gave them, under the name of the environment variable.
    private static final List<String> GIVEN = List.of("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF");

    /// The settings that a snapshot records one by one, each with its value if nobody sets it.
    private static final Map<String, String> DEFAULTS = Map.of(
            "max_split_size", "-1",
            "garbage_collection_threshold", "0.0",
            "roundup_power2_divisions", "",
            "graph_capture_record_stream_reuse", "false");

    /// Settings that the models follow, or that change neither what the allocator reserves nor what it refuses.
    private static final Pattern HARMLESS =
            Pattern.compile("backend:native|(expandable_segments|pinned_\\w+|release_lock_on_\\w+):.*");

    /// A key and its value, which may be a list in brackets.
    private static final Pattern ENTRY = Pattern.compile("(\\w+):(\\[[^]]*]|[^,]*)");

    private static final String MEBIBYTES = "_mb";

    private UnfollowedSettings() {}

    /// Returns them as PyTorch writes them, such as `max_split_size_mb:128`; empty if another program recorded.
    static List<String> of(Recorder recorder) {
        if (!recorder.name().equals("PyTorch")) {
            return List.of();
        }
        Map<String, String> recorded = new LinkedHashMap<>(recorder.settings());
        List<String> found = new ArrayList<>();
        for (String name : GIVEN) {
            Matcher entry = ENTRY.matcher(recorded.getOrDefault(name, "").replace(" ", ""));
            while (entry.find()) {
                String key = entry.group(1).endsWith(MEBIBYTES)
                        ? entry.group(1).substring(0, entry.group(1).length() - MEBIBYTES.length())
                        : entry.group(1);
                String now = recorded.remove(key);
                boolean isDefault = now != null && now.equals(DEFAULTS.get(key));
                if (!isDefault && !HARMLESS.matcher(entry.group()).matches() && !found.contains(entry.group())) {
                    found.add(entry.group());
                }
            }
        }
        DEFAULTS.entrySet().stream()
                .sorted(Map.Entry.comparingByKey())
                .filter(usual -> !usual.getValue().equals(recorded.getOrDefault(usual.getKey(), usual.getValue())))
                .forEach(usual -> found.add(usual.getKey() + ":" + recorded.get(usual.getKey())));
        return found;
    }
}
