package io.cistern.cli.fit;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.Elapsed;
import io.cistern.cli.fit.Fit.Answer;
import io.cistern.cli.fit.Fit.Room;
import io.cistern.cli.fit.Holders.Holder;
import io.cistern.cli.fit.Holders.Moment;
import io.cistern.cli.report.ShownFit;
import io.cistern.cli.report.ShownFit.Fact;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Leaks.Leak;
import io.cistern.cli.trace.Recorder;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Recording.Refusal;
import io.cistern.simulated.SimulatedGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Says for people how a program fits on one device.
final class FitText {
    private static final int MOST_HOLDERS = 3;
    private static final String UNKNOWN = "-";
    private static final long MIB = 1L << 20;
    private static final long CONTEXT_BYTES = 512 * MIB;

    private final Fit fit;

    FitText(Fit fit) {
        this.fit = fit;
    }

    /// Returns the answer for one device.
    ///
    /// @param several whether the program uses several devices
    /// @param judged the allocators that it is about
    ShownFit.Answer answer(String file, boolean several, List<String> judged) {
        return new ShownFit.Answer(
                fit.fits(judged)
                        && judgedAnswers(judged)
                                .allMatch(answer -> fit.capacityFor(answer).isPresent()),
                heading(file, several),
                facts(),
                columns(),
                rows(),
                notes(judged),
                verdicts(several, judged),
                Stream.of(why(judged), leak(), gpus(judged))
                        .filter(reason -> !reason.isEmpty())
                        .map(reason -> deviceIf(several) + reason)
                        .toList());
    }

    private String heading(String file, boolean several) {
        Recording recording = fit.recording();
        int rows = recording.recordedOperations();
        long nanos = recordedNanos();
        return file + (several ? ", device " + recording.ordinals()[0] : "") + ": "
                + (recording.recorder().name().isEmpty()
                        ? ""
                        : "recorded by " + recording.recorder().name() + ", ")
                + String.format(Locale.ROOT, "%,d", rows)
                + (rows == 1 ? " allocation" : " allocations and frees")
                + (nanos > 0 ? " in " + Elapsed.format(nanos) : "");
    }

    private long recordedNanos() {
        return fit.recording().nanos()[fit.recording().nanos().length - 1];
    }

    private List<Fact> facts() {
        Recording recording = fit.recording();
        String recorder = recording.recorder().name();
        List<Fact> facts = new ArrayList<>();
        fit.refusal()
                .ifPresent(refusal -> facts.add(new Fact(
                        "refused",
                        ByteSize.format(refusal.byteSize())
                                + moment(refusal.row())
                                + (recording.refusals().size() > 1
                                        ? "; the last of "
                                                + recording.refusals().size() + " refusals"
                                        : ""))));
        facts.add(new Fact(
                "peak requested",
                ByteSize.format(fit.peak().requestedBytes()) + moment(fit.peak().row())));
        fit.recordedBytes()
                .ifPresent(bytes -> facts.add(new Fact(
                        recorder + " reserved",
                        ByteSize.format(bytes) + " at most, " + ByteSize.format(bytes - fit.servedPeakBytes())
                                + " ("
                                + over(OptionalLong.of(bytes), fit.servedPeakBytes())
                                + ") more than live blocks took at their peak")));
        if (fit.recordedBytes().isEmpty() && !recording.recorder().reserved().isEmpty()) {
            facts.add(new Fact(recorder + " reserved", "unknown: the file's segments hold less than its blocks"));
        }
        fit.room()
                .ifPresent(
                        room -> facts.add(new Fact("available", ByteSize.format(room.byteSize()) + ": " + room.why())));
        List<Holder> holders = fit.peak().holders();
        long all = fit.peak().servedBytes();
        String title = "held at the peak";
        String ofAll = " of " + ByteSize.format(all);
        for (Holder holder : holders) {
            if (holders.indexOf(holder) >= MOST_HOLDERS && !holder.site().equals(Holders.WAITING)) {
                continue;
            }
            facts.add(new Fact(
                    title,
                    ByteSize.format(holder.byteSize()) + ", " + percent(holder.byteSize(), all) + ofAll + ": "
                            + name(holder.site())
                            + count(", ", holder.blocks(), "block")));
            title = "";
            ofAll = "";
        }
        if (recording.recorder().olderBlocks() > 0) {
            facts.add(new Fact(
                    "older blocks",
                    String.format(Locale.ROOT, "%,d", recording.recorder().olderBlocks())
                            + " from before the recording; earlier events are lost"));
        }
        facts.addAll(leakFacts());
        return facts;
    }

    private List<Fact> leakFacts() {
        String title = "looks like a leak";
        if (!fit.leaks().unknown().isEmpty()) {
            return List.of(new Fact(title, "unknown: " + fit.leaks().unknown()));
        }
        long nanos = recordedNanos();
        return fit.leaks().found().isEmpty()
                ? List.of(new Fact(title, "nothing" + (nanos > 0 ? " in these " + Elapsed.format(nanos) : "")))
                : fit.leaks().found().stream()
                        .limit(MOST_HOLDERS)
                        .map(leak -> new Fact(
                                title,
                                name(leak.site()) + ": " + ByteSize.format(leak.byteSize()) + " that grew in "
                                        + (leak.rises() + 1) + " of 10 parts of the recording; " + leak.freed()
                                        + count(" of ", leak.made(), "block") + " freed"))
                        .toList();
    }

    private String moment(int row) {
        long nanos = fit.recording().nanos()[row];
        String place = fit.place(row);
        return (nanos > 0 ? " after " + Elapsed.format(nanos) : "") + (place.isEmpty() ? "" : " at " + place);
    }

    private static String name(String site) {
        return site.isEmpty() ? "no call stack recorded" : CallStacks.shortened(site);
    }

    private static String count(String before, long count, String what) {
        return before + String.format(Locale.ROOT, "%,d ", count) + what + (count == 1 ? "" : "s");
    }

    private static String percent(long part, long whole) {
        return String.format(Locale.ROOT, "%.0f %%", 100.0 * part / Math.max(1, whole));
    }

    private static String over(OptionalLong reserved, long requested) {
        return reserved.isEmpty()
                ? UNKNOWN
                : String.format(
                        Locale.ROOT, "%.1f %%", 100.0 * (reserved.getAsLong() - requested) / Math.max(1, requested));
    }

    private static String size(OptionalLong bytes) {
        return bytes.isEmpty() ? UNKNOWN : ByteSize.format(bytes.getAsLong());
    }

    private static String needed(OptionalLong bytes) {
        return bytes.isEmpty() ? UNKNOWN : ByteSize.formatUp(bytes.getAsLong());
    }

    private List<List<String>> columns() {
        List<String> upper = new ArrayList<>(List.of("", "", "", "needs at least"));
        List<String> lower = new ArrayList<>(List.of(
                "allocator",
                "reserves",
                "overhead",
                "(to " + Player.step(fit.recording().trace()) / MIB + " MiB)"));
        fit.room().ifPresent(room -> {
            upper.add("on");
            lower.add(ByteSize.format(room.byteSize()));
        });
        return List.of(upper, lower);
    }

    private List<List<String>> rows() {
        return fit.answers().stream()
                .map(answer -> {
                    List<String> row = new ArrayList<>(List.of(
                            answer.spec(),
                            size(answer.reservedBytes()),
                            over(answer.reservedBytes(), fit.peak().requestedBytes()),
                            needed(answer.smallestBytes())));
                    fit.room().ifPresent(_ -> row.add(verdict(answer)));
                    return row;
                })
                .collect(Collectors.toList());
    }

    private List<String> notes(List<String> judged) {
        return Stream.of(refusals(), allocators(), models(), others(judged), settings(), doubt())
                .flatMap(String::lines)
                .toList();
    }

    /// Says which requests fail before the one that the recorder refused.
    private String refusals() {
        return fit.answers().stream()
                .filter(answer -> !answer.failures().isEmpty() && !isOfRecorder(answer))
                .map(answer -> answer.spec() + " refuses " + refused(answer)
                        + moment(answer.failures().getFirst()) + "\n")
                .collect(Collectors.joining());
    }

    private String allocators() {
        List<String> shown = fit.answers().stream().map(Answer::spec).toList();
        return Stream.of(
                        List.of("caching", "Cistern's allocator"),
                        List.of("async", "the driver's pool"),
                        List.of("direct", "plain cudaMalloc"))
                .filter(each -> shown.contains(each.getFirst()))
                .map(each -> each.getFirst() + " is " + each.getLast())
                .collect(Collectors.joining(", "));
    }

    /// Says how to ask about other allocators, and how a PyTorch program uses one.
    private String others(List<String> judged) {
        String asked = judged.size() < fit.answers().size() ? "to try others: --allocator caching:fit=tight\n" : "";
        String used = judged.stream()
                .filter(spec -> !Fitting.MODELS.contains(spec))
                .findFirst()
                .filter(_ -> fit.recording().recorder().name().equals("PyTorch"))
                .map(spec -> "to use one in PyTorch: cistern_torch.enable(\"" + spec + "\"), see docs/pytorch.md\n")
                .orElse("");
        return asked + used;
    }

    /// Returns the answer for the model of the allocator that served the program; empty if none is or none is shown.
    private Optional<Answer> own() {
        Recorder recorder = fit.recording().recorder();
        return recorder.name().equals("PyTorch")
                ? answer(Fitting.MODELS.get(isExpandable(recorder) ? 1 : 0))
                : Optional.empty();
    }

    private String models() {
        List<String> shown = fit.answers().stream()
                .map(Answer::spec)
                .filter(Fitting.MODELS::contains)
                .distinct()
                .toList();
        return switch (shown.size()) {
            case 0 -> "";
            case 1 ->
                shown.getFirst() + " is a model of PyTorch's allocator, with"
                        + (shown.equals(Fitting.MODELS.subList(0, 1)) ? "out" : "") + " expandable_segments:True\n";
            default ->
                "pytorch-native and pytorch-expandable are models of PyTorch's allocator, without and with"
                        + " expandable_segments:True\n";
        };
    }

    private String settings() {
        List<String> unfollowed = UnfollowedSettings.of(fit.recording().recorder());
        return unfollowed.isEmpty() || fit.answers().stream().map(Answer::spec).noneMatch(Fitting.MODELS::contains)
                ? ""
                : "the program ran with " + listed(unfollowed, " and ") + ", which the models do not follow\n";
    }

    /// Says that the recording lacks something, if the model of the allocator that wrote it serves what that one
    /// refused.
    private String doubt() {
        Recorder recorder = fit.recording().recorder();
        boolean isModelled = !recorder.settings().isEmpty()
                && UnfollowedSettings.of(recorder).isEmpty();
        return own().filter(own -> fit.room().isPresent()
                        && fit.room().equals(Room.of(fit.recording()))
                        && fit.refusal()
                                .filter(refusal -> !own.failures().contains(refusal.row()))
                                .isPresent())
                .map(own -> own.spec() + " serves what PyTorch refused, so the recording is incomplete"
                        + (isModelled ? "" : ", or the program used settings that the model does not have")
                        + ": do not rely on a small margin\n")
                .orElse("");
    }

    private String verdict(Answer answer) {
        if (answer.failures().isEmpty()) {
            return "fits";
        }
        return isOfRecorder(answer) ? "refuses it" : "refuses " + refused(answer);
    }

    /// Whether an allocator refuses nothing before the request that the recorder refused.
    private boolean isOfRecorder(Answer answer) {
        return fit.refusal()
                .filter(refusal -> refusal.row() == answer.failures().getFirst())
                .isPresent();
    }

    private String refused(Answer answer) {
        return ByteSize.format(
                fit.recording().trace().byteSizes()[answer.failures().getFirst()]);
    }

    private List<String> verdicts(boolean several, List<String> judged) {
        List<Holder> holders = fit.peak().holders();
        String held = holders.isEmpty() || fit.refused().isPresent() ? "" : held(holders.getFirst());
        return judgedAnswers(judged)
                .map(answer -> deviceIf(several)
                        + (fit.room().isEmpty()
                                ? needs(answer, judged) + held + ". Pass --capacity to check a device."
                                : fits(several, answer, judged) + held + "."))
                .toList();
    }

    private String deviceIf(boolean several) {
        return several ? "Device " + fit.recording().ordinals()[0] + ": " : "";
    }

    private Stream<Answer> judgedAnswers(List<String> judged) {
        return fit.answers().stream().filter(answer -> judged.contains(answer.spec()));
    }

    /// Says why the last request was refused; empty if none was.
    private String why(List<String> judged) {
        return fit.refused()
                .map(then -> "Why: " + live(then) + cause(fit.refusal().orElseThrow(), then.servedBytes(), judged))
                .orElse("");
    }

    private static String live(Moment then) {
        String text = ByteSize.format(then.servedBytes()) + " were live at the refusal";
        if (then.holders().isEmpty() || then.holders().getFirst().site().isEmpty()) {
            return text;
        }
        Holder first = then.holders().getFirst();
        String share = first.byteSize() == then.servedBytes() ? "all" : ByteSize.format(first.byteSize());
        return text + ", " + share + " of them "
                + (first.site().equals(Holders.WAITING) ? first.site() : "from " + name(first.site()));
    }

    private String cause(Refusal refusal, long liveBytes, List<String> judged) {
        long freeBytes = refusal.then().freeBytes();
        long heldBytes = refusal.then().reservedBytes();
        if (freeBytes < 0 || heldBytes < liveBytes) {
            return "."; // The file does not say, or lacks segments.
        }
        String request = ByteSize.format(refusal.byteSize());
        String free = ByteSize.format(freeBytes);
        if (freeBytes >= fit.recording().recorder().driverBytes(refusal.byteSize())) {
            return ". A limit refused the " + request + ", since " + free + " of the device were free.";
        }
        if (liveBytes + refusal.byteSize() > heldBytes + freeBytes) {
            return ". With the " + request + " requested, that is more than the "
                    + ByteSize.format(heldBytes + freeBytes) + " available: no setting can help.";
        }
        return ". Fragmentation: " + fit.recording().recorder().name() + " held another "
                + ByteSize.format(heldBytes - liveBytes) + ", and " + free
                + " of the device were free, but no piece was large enough for " + request + joining(judged) + ".";
    }

    /// Names what joins free pieces and so serves everything; empty if nothing does.
    private String joining(List<String> judged) {
        return !remedy(judged).isEmpty()
                ? "; expandable_segments:True joins pieces"
                : judgedAnswers(judged)
                        .filter(answer -> answer.spec().startsWith("caching")
                                && answer.failures().isEmpty())
                        .findFirst()
                        .map(answer -> "; Cistern's " + answer.spec() + " joins pieces")
                        .orElse("");
    }

    private String leak() {
        List<Leak> found = fit.leaks().found();
        return found.isEmpty()
                ? ""
                : "Likely leak: " + name(found.getFirst().site()) + " holds "
                        + ByteSize.format(found.getFirst().byteSize()) + " at the end, and its live bytes keep growing"
                        + (found.size() > 1 ? count("; so do those of ", found.size() - 1L, "other place") : "") + ".";
    }

    /// Says how large a GPU has to be for the program: with what is recommended, and with what it used.
    private String gpus(List<String> judged) {
        Optional<Answer> expandable = remedy(judged).isEmpty() ? Optional.empty() : answer(Fitting.MODELS.getLast());
        String sizes = Stream.of(
                        expandable.map(answer -> gpu(answer, "expandable_segments:True")).stream(),
                        judgedAnswers(judged).map(answer -> gpu(answer, answer.spec())),
                        own()
                                .filter(own -> !judged.contains(own.spec()))
                                .map(own -> gpu(own, own.spec() + ", which the program used"))
                                .stream())
                .flatMap(parts -> parts)
                .filter(part -> !part.isEmpty())
                .collect(Collectors.joining("; "));
        return sizes.isEmpty() ? "" : "Smallest GPU, with 0.5 GiB for the CUDA context: " + sizes + ".";
    }

    private static String gpu(Answer answer, String name) {
        return answer.smallestBytes().isEmpty()
                ? ""
                : ByteSize.formatUp(answer.smallestBytes().getAsLong() + CONTEXT_BYTES) + " with " + name;
    }

    private String needs(Answer answer, List<String> judged) {
        List<Answer> others = fit.answers().stream()
                .filter(each -> !judged.contains(each.spec()))
                .toList();
        String serving = others.stream()
                .filter(each -> each.smallestBytes().isPresent())
                .map(each -> each.spec() + " " + needed(each.smallestBytes()))
                .collect(Collectors.joining(", "));
        List<String> refusing = others.stream()
                .filter(each -> each.smallestBytes().isEmpty())
                .map(Answer::spec)
                .toList();
        String evenOn = " it even on " + ByteSize.format(SimulatedGpu.MAX_CAPACITY_BYTES);
        boolean serves = answer.smallestBytes().isPresent();
        return answer.spec()
                + (serves ? " needs " + needed(answer.smallestBytes()) : " refuses" + evenOn)
                + (serving.isEmpty() ? "" : "; " + serving)
                + (refusing.isEmpty()
                        ? ""
                        : "; " + listed(refusing, " and ") + (refusing.size() == 1 ? " refuses" : " refuse")
                                + (serves ? evenOn : " it, too"));
    }

    /// Says with which allocators it fits. PyTorch's own remedy comes first, since it needs no other allocator.
    private String fits(boolean several, Answer answer, List<String> judged) {
        String remedy = remedy(judged);
        String sentence = remedy
                + (remedy.isEmpty() ? "it " : ". It ")
                + conclusion(answer, judged, remedy.isEmpty() ? List.of() : Fitting.MODELS);
        return several ? sentence : sentence.substring(0, 1).toUpperCase(Locale.ROOT) + sentence.substring(1);
    }

    private String remedy(List<String> judged) {
        Recorder recorder = fit.recording().recorder();
        boolean isAsked = recorder.name().equals("PyTorch")
                && !isExpandable(recorder)
                && !judged.contains(Fitting.MODELS.getLast())
                && answer(Fitting.MODELS.getFirst())
                        .filter(answer -> !answer.failures().isEmpty())
                        .isPresent();
        return answer(Fitting.MODELS.getLast())
                .filter(expandable -> isAsked && expandable.failures().isEmpty())
                .map(expandable -> "with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True the program would probably "
                        + (fit.refusal().isPresent() ? "have fitted" : "fit")
                        + need(expandable)
                                .map(need -> " (needs " + need + " of " + room() + ")")
                                .orElse(""))
                .orElse("");
    }

    private Optional<Answer> answer(String spec) {
        return fit.answers().stream()
                .filter(answer -> answer.spec().equals(spec))
                .findFirst();
    }

    private static boolean isExpandable(Recorder recorder) {
        return Boolean.parseBoolean(recorder.settings().getOrDefault("expandable_segments", "false"));
    }

    private static String held(Holder holder) {
        return holder.site().isEmpty()
                ? ""
                : holder.site().equals(Holders.WAITING)
                        ? "; " + ByteSize.format(holder.byteSize()) + " " + holder.site()
                        : "; " + name(holder.site()) + " holds " + ByteSize.format(holder.byteSize());
    }

    /// @param remedies allocators of which the text before says that one fits, and the other does not
    private String conclusion(Answer answer, List<String> judged, List<String> remedies) {
        boolean fits = answer.failures().isEmpty();
        List<Answer> others = fit.answers().stream()
                .filter(each -> !judged.contains(each.spec()) && !remedies.contains(each.spec()))
                .toList();
        List<String> serving = named(others, true);
        String fitting = listed(serving, " and ");
        String refusing = listed(named(others, false), " or ");
        String cisterns = answer.spec().startsWith("caching") ? "Cistern's " : "";
        if (fits && !remedies.isEmpty()) {
            List<String> all = new ArrayList<>(serving);
            all.addFirst(cisterns + named(answer));
            return "would also fit with " + listed(all, " and ")
                    + (refusing.isEmpty() ? "" : ", but not with " + refusing);
        }
        String own = (fits ? "fits on " : "does not fit on ") + room() + " with " + cisterns + answer.spec()
                + need(answer).map(need -> ", which needs " + need).orElse("");
        if (fit.peak().requestedBytes() > fit.room().orElseThrow().byteSize()) {
            return own + ". No allocator can serve it: the program requests "
                    + ByteSize.format(fit.peak().requestedBytes()) + " at once";
        }
        return own
                + (fitting.isEmpty() ? "" : (fits ? "; also with " : "; it fits with ") + fitting)
                + (refusing.isEmpty() ? "" : (fitting.isEmpty() ? "; not with " : ", but not with ") + refusing);
    }

    private String room() {
        return ByteSize.format(fit.room().orElseThrow().byteSize());
    }

    private List<String> named(List<Answer> answers, boolean fits) {
        return answers.stream()
                .filter(each -> each.failures().isEmpty() == fits)
                .map(each -> named(each))
                .toList();
    }

    private String named(Answer answer) {
        return answer.spec() + need(answer).map(need -> " (" + need + ")").orElse("");
    }

    /// Returns what an allocator needs; empty if unknown, or if the room contradicts it, since that is found in steps
    /// and PyTorch's allocators may refuse on a larger device.
    private Optional<String> need(Answer answer) {
        return answer.smallestBytes().stream()
                .filter(bytes -> answer.failures().isEmpty()
                        == bytes <= fit.room().orElseThrow().byteSize())
                .mapToObj(ByteSize::formatUp)
                .findFirst();
    }

    private static String listed(List<String> names, String last) {
        int size = names.size();
        return size < 2
                ? String.join("", names)
                : String.join(", ", names.subList(0, size - 1)) + last + names.getLast();
    }
}
