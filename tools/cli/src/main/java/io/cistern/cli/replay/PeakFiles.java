package io.cistern.cli.replay;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.OutputFile;
import io.cistern.cli.report.ReportPage;
import io.cistern.cli.report.Snapshot;
import io.cistern.observability.MemorySnapshot;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Writes the snapshots at the peaks of replays, and one report of all.
///
/// @param snapshot the file for snapshots, or null
/// @param html the file for the report, or null
/// @param inputs the traces, which are never overwritten
/// @param several whether there is more than one replay, so that each needs a file of its own
/// @param shown the snapshots in the report
/// @param files the files of snapshots so far
/// @param written the files so far with their sizes, for people
record PeakFiles(
        @Nullable Path snapshot,
        @Nullable Path html,
        List<Path> inputs,
        boolean several,
        List<Snapshot> shown,
        Set<Path> files,
        List<String> written) {
    PeakFiles(@Nullable Path snapshot, @Nullable Path html, List<Path> inputs, boolean several) {
        this(snapshot, html, inputs, several, new ArrayList<>(), new HashSet<>(), new ArrayList<>());
    }

    boolean isWanted() {
        return snapshot != null || html != null;
    }

    /// Adds the snapshot of one replay.
    ///
    /// @param replay the replay's name, for people
    void add(String replay, MemorySnapshot taken) {
        if (snapshot != null) {
            Path file = several ? sibling(snapshot, replay) : snapshot;
            OutputFile.check("--snapshot", file, inputs);
            try {
                taken.write(file);
                written.add(file + ", " + ByteSize.format(Files.size(file)));
            } catch (IOException e) {
                throw OutputFile.unwritable("--snapshot", file, e);
            }
        }
        try {
            if (html != null) {
                var json = new ByteArrayOutputStream();
                taken.writeJson(json);
                shown.add(Snapshot.of(replay, json.toString(StandardCharsets.UTF_8)));
            }
        } catch (IOException | InputException e) {
            throw new IllegalStateException("the snapshot that was written can't be read", e);
        }
    }

    /// Returns, for example, `peak-gpt2_train-caching.json` for `peak.json`. Replays of the same name get numbers.
    private Path sibling(Path file, String replay) {
        String name = String.valueOf(file.getFileName());
        int dot = name.lastIndexOf('.');
        int end = dot < 0 ? name.length() : dot;
        String begin = name.substring(0, end) + "-" + replay.replaceAll("[^\\w.]+", "-");
        Path made = file.resolveSibling(begin + name.substring(end));
        for (int number = 2; !files.add(made); number++) {
            made = file.resolveSibling(begin + "-" + number + name.substring(end));
        }
        return made;
    }

    void finish() {
        if (html != null) {
            try {
                written.add(ReportPage.write(shown, "", html));
            } catch (IOException e) {
                throw OutputFile.unwritable("--html", html, e);
            }
        }
    }
}
