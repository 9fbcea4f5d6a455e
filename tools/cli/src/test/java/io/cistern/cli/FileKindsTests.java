package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Every command that reads a file recognises it by its content. Its name says nothing, and may be anything.
final class FileKindsTests {
    /// A recording of each kind, and what a command that does not read it calls it.
    private static final Map<String, String> RECORDINGS = Map.of(
            "torch-own.pickle", "is a pickle, not ",
            "rmm-bare-hex.csv", "is an RMM log, not ",
            "trace-2.csv", "is a trace, not ",
            "snapshot-own.json", "is JSON, not ");

    private static final Map<String, UnaryOperator<byte[]>> PACKINGS = Map.of(
            "plain", bytes -> bytes,
            "gzip", Damage::gzip,
            "zip", bytes -> zip(Map.of("a/", new byte[0], "a/b", bytes, "a/notes.txt", text("of today"))),
            "gzip in zip", bytes -> zip(Map.of("a", Damage.gzip(bytes))),
            "as torch.save does",
                    bytes -> zip(Map.of(
                            "a/data.pkl", bytes, "a/data/0", new byte[] {(byte) 0x80, 2}, "a/version", text("3\n"))));

    /// The byte of the last one is no UTF-8, so Java puts U+FFFD in its place.
    private static final List<String> NAMES =
            List.of("x", "x.gz", "x.csv", "x.json", "x.pickle", "x.zip", "a b", "a\nb", "-x", "\u00e9", "\uFFFD");

    @TempDir
    private static Path folder;

    private static Samples samples;

    @BeforeAll
    static void makeSamples() throws IOException {
        samples = new Samples(folder);
    }

    static Stream<Arguments> packed() {
        return DamagedFilesTests.READERS.keySet().stream()
                .flatMap(reader -> RECORDINGS.keySet().stream()
                        .flatMap(recording ->
                                PACKINGS.keySet().stream().map(packing -> Arguments.of(reader, recording, packing))));
    }

    @ParameterizedTest
    @MethodSource
    void packed(String reader, String recording, String packing) throws Exception {
        Path file = folder.resolve("packed");
        Files.write(file, PACKINGS.get(packing).apply(samples.bytes(recording)));

        check(reader, recording, file, DamagedFilesTests.read(reader, file));
    }

    @ParameterizedTest
    @MethodSource("readers")
    void ofAnyName(String reader) throws Exception {
        for (String recording : RECORDINGS.keySet()) {
            for (String name : NAMES) {
                Path file = write(name, samples.bytes(recording));

                check(reader, recording, file, DamagedFilesTests.read(reader, file));
            }
        }
    }

    @ParameterizedTest
    @MethodSource("readers")
    void textsOfSpreadsheets(String reader) throws Exception {
        for (String recording : List.of("rmm-bare-hex.csv", "trace-2.csv")) {
            String lines = new String(samples.bytes(recording), StandardCharsets.UTF_8).replace("\n", "\r\n");
            Path file = Files.write(folder.resolve("sheet"), text("\uFEFF" + lines));

            check(reader, recording, file, DamagedFilesTests.read(reader, file));
        }
    }

    static Stream<String> readers() {
        return DamagedFilesTests.READERS.keySet().stream();
    }

    private static void check(String reader, String recording, Path file, ProgramRun run) {
        if (DamagedFilesTests.READERS.get(reader).reads().test(recording)) {
            assertThat(run.exitCode()).as(run.err()).isIn(0, 3);
        } else {
            assertRefused(run, file, RECORDINGS.get(recording));
        }
    }

    private static void assertRefused(ProgramRun run, Path file, String reason) {
        assertThat(run.exitCode()).as(run.err()).isEqualTo(2);
        assertThat(run.err().lines())
                .singleElement()
                .asString()
                .startsWith(file.toString().replace('\n', '?') + ":")
                .contains(reason);
    }

    @ParameterizedTest
    @MethodSource("readers")
    void otherFilesAreRefusedInALineThatSaysWhatTheyAre(String reader) throws Exception {
        byte[] whole = samples.bytes("torch-own.pickle");
        byte[] packed = Damage.gzip(whole);
        boolean isRead = DamagedFilesTests.READERS.get(reader).reads().test("torch-own.pickle");
        byte[] model = text("\u0080\u0002ccollections\nOrderedDict\n)R.");
        String ofObjects = isRead ? "it makes an object, collections.OrderedDict" : "is a pickle, not a";
        Map<String, byte[]> files = new LinkedHashMap<>();
        files.put("empty", new byte[0]);
        files.put(isRead ? " of the unpacked data" : "is a pickle, not ", Arrays.copyOf(packed, packed.length / 2));
        files.put("the file is cut off", Arrays.copyOf(packed, 5));
        files.put("the compressed data is damaged", Arrays.copyOf(zip(Map.of("a", whole)), 300));
        files.put("is a zip archive of 2 recordings, ", zip(Map.of("a", whole, "b", packed)));
        files.put("is a zip archive without a recording; it holds a.npy", zip(Map.of("a.npy", text("NUMPY"))));
        files.put("is a gzip file inside another one, not ", Damage.gzip(Damage.gzip(packed)));
        files.put("is a web page, not ", text("<!DOCTYPE html>\n<html>\n"));
        files.put(ofObjects, Arrays.copyOfRange(model, 1, model.length)); // U+0080 takes two bytes.
        for (Map.Entry<String, byte[]> each : files.entrySet()) {
            Path file = Files.write(folder.resolve("other"), each.getValue());

            assertRefused(DamagedFilesTests.read(reader, file), file, each.getKey());
        }
        assertRefused(DamagedFilesTests.read(reader, folder), folder, "is a folder");
    }

    private static Path write(String name, byte[] bytes) throws Exception {
        Path file = folder.resolve(name);
        if (!name.equals("\uFFFD")) {
            return Files.write(file, bytes);
        }
        Path plain = Files.write(folder.resolve("plain"), bytes);
        new ProcessBuilder("bash", "-c", "cp \"$0\" \"$1\"/$'\\xe9'", plain.toString(), folder.toString())
                .start()
                .waitFor();
        return file;
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] zip(Map<String, byte[]> entries) {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (ZipOutputStream out = new ZipOutputStream(packed)) {
            for (Map.Entry<String, byte[]> entry : entries.entrySet()) {
                out.putNextEntry(new ZipEntry(entry.getKey()));
                out.write(entry.getValue());
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return packed.toByteArray();
    }
}
