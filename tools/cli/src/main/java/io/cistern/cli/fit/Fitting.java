package io.cistern.cli.fit;

import io.cistern.cli.common.AllocatorChoice;
import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.Progress;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.Work;
import io.cistern.cli.fit.Fit.Answer;
import io.cistern.cli.fit.Fit.Room;
import io.cistern.cli.report.ShownFit;
import io.cistern.cli.report.Snapshot;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.trace.Leaks;
import io.cistern.cli.trace.Recording;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.spi.catalog.Catalog;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// Finds out how programs fit with some allocators.
///
/// @param judged those of them that the answer is about; the others are there to compare
/// @param capacity what they may take of a device; null for what the recording says
/// @param err standard error, for progress
record Fitting(
        Catalog catalog,
        List<String> specs,
        List<String> judged,
        @Nullable Long capacity,
        PrintWriter err) {
    /// Models to compare with. They are no plug-ins, and nobody is notified of them elsewhere.
    static final List<String> MODELS = List.of("pytorch-native", "pytorch-expandable");
    /// A longer replay shows no memory on the page.
    private static final int MAX_SHOWN_OPERATIONS = 300_000;

    /// @param asked the specs of the command line; empty for all that can run, and the models
    /// @throws io.cistern.cli.common.UsageException if one of those asked for can't run
    static Fitting with(List<String> asked, @Nullable Long capacity, PrintWriter err) {
        Catalog catalog = Plugins.catalog();
        Settings.ofProcess().all().stream()
                .filter(set -> set.setting() == Setting.LIMIT || set.setting() == Setting.DEVICE_LIMIT)
                .forEach(set -> err.println("cistern: " + set.source() + " limits the replays, too: " + set.text()));
        ReplayDevice gpu = new ReplayDevice.Simulated(OptionalLong.empty());
        List<String> specs = new ArrayList<>(new AllocatorChoice(gpu, catalog, Work.NONE).specs(asked));
        List<String> judged = List.copyOf(asked.isEmpty() ? specs.subList(0, 1) : specs);
        if (asked.isEmpty()) {
            catalog.entries().stream()
                    .map(Catalog.Entry::name)
                    .filter(MODELS::contains)
                    .sorted(Comparator.comparingInt(MODELS::indexOf))
                    .forEach(specs::add);
        }
        return new Fitting(catalog, specs, judged, capacity, err);
    }

    /// Finds out how a program fits on each of its devices.
    FileFit fit(Path file, Recording program) {
        String shortName = String.valueOf(file.getFileName());
        return new FileFit(
                InputException.oneLine(file.toString()),
                program.byDevice().stream()
                        .map(device -> fit(shortName, device))
                        .toList(),
                judged);
    }

    /// @param recording of one device
    private Fit fit(String name, Recording recording) {
        Optional<Room> room =
                capacity == null ? Room.of(recording) : Optional.of(new Room(capacity, "as --capacity says"));
        Holders holders = new Holders(recording);
        List<Answer> answers;
        try (Progress progress = new Progress("fit", specs.size())) {
            progress.message(name);
            // Each allocator has a simulated device of its own.
            answers = specs.parallelStream()
                    .map(spec -> {
                        Answer answer = answer(player(recording, spec), room);
                        progress.step();
                        return answer;
                    })
                    .toList();
        }
        return new Fit(
                recording,
                room,
                holders.peak(),
                holders.refused(),
                holders.servedPeakBytes(),
                Leaks.of(recording),
                answers);
    }

    private Player player(Recording recording, String spec) {
        return new Player(recording.trace().onOneThread(), spec, catalog);
    }

    private static Answer answer(Player player, Optional<Room> room) {
        OptionalLong reserved = player.reservedPeakBytes();
        List<Integer> failures =
                room.map(each -> player.failures(each.byteSize())).orElse(List.of());
        OptionalLong smallest =
                reserved.isPresent() ? player.smallestBytes(reserved.getAsLong()) : OptionalLong.empty();
        return new Answer(player.spec(), reserved, failures, smallest);
    }

    /// Returns the pages of a file: its own snapshot, and the memory of the judged allocators at the refusal or the
    /// peak; without a snapshot, that of PyTorch's model, too.
    ///
    /// @param snapshot null if the file is none
    List<Snapshot> pages(String name, @Nullable TorchSnapshot snapshot, FileFit fitted) throws IOException {
        List<Fit> fits = fitted.devices();
        ShownFit shown = fitted.shown();
        List<Snapshot> pages = new ArrayList<>();
        if (snapshot != null) {
            pages.add(Snapshot.of(
                    name,
                    snapshot,
                    fits.stream().anyMatch(fit -> fit.refusal().isPresent())
                            ? snapshot.recorder() + " wrote this snapshot after the exception"
                            : "A snapshot that " + snapshot.recorder() + " took",
                    shown));
        }
        for (Fit fit : fits) {
            for (Answer answer : fit.answers()) {
                if (judged.contains(answer.spec())
                        || (snapshot == null && MODELS.getFirst().equals(answer.spec()))) {
                    String place =
                            fits.size() > 1 ? ", device " + fit.recording().ordinals()[0] : "";
                    String title = name + " with " + answer.spec() + place;
                    Optional<Long> roomy = fit.capacityFor(answer);
                    if (roomy.isEmpty() || fit.recording().trace().operations() > MAX_SHOWN_OPERATIONS) {
                        err.println("cistern: the page does not show " + title
                                + (roomy.isEmpty()
                                        ? ": it refuses a request on any device"
                                        : String.format(
                                                Locale.ROOT,
                                                ": that is more than %,d allocations and frees",
                                                MAX_SHOWN_OPERATIONS)));
                        continue;
                    }
                    pages.add(Snapshot.of(
                            title,
                            PlayedSnapshot.of(
                                    fit.recording(),
                                    player(fit.recording(), answer.spec()).behind(fit.decisiveRow(), roomy.get())),
                            replayed(fit, answer, roomy.get()),
                            pages.isEmpty() ? shown : shown.onLaterPages()));
                }
            }
        }
        return pages;
    }

    private static String replayed(Fit fit, Answer answer, long capacityBytes) {
        return "A replay with " + answer.spec() + " on " + ByteSize.format(capacityBytes)
                + (answer.failures().isEmpty()
                        ? ""
                        : ", which it needs, since it does not fit on "
                                + ByteSize.format(fit.room().orElseThrow().byteSize()) + ",")
                + (fit.refusal().isPresent() ? " until the request that was refused" : " until the program's peak");
    }
}
