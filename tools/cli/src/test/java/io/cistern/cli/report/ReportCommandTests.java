package io.cistern.cli.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.ProgramRun;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ReportCommandTests {
    @TempDir
    private Path folder;

    @Test
    void aReportIsOneFileThatNeedsNoNetwork() throws Exception {
        String page = report(SampleSnapshots.healthy(folder.resolve("healthy.json")));

        assertThat(page)
                .startsWith("<!DOCTYPE html>")
                .contains("github.com/leeoniya/uPlot", "The MIT License (MIT)", "default-src 'none'")
                .doesNotContainPattern("(src|href)=\"(https?:)?//")
                .doesNotContainPattern("@[a-zA-Z]+@")
                .doesNotContain("import(", "fetch(", "XMLHttpRequest");
    }

    @Test
    void nothingInASnapshotCanEndItsElement() throws Exception {
        String page = report(SampleSnapshots.leak(folder.resolve("leak.json")));

        assertThat(page).contains("reindex \\u003c/script> begins").doesNotContain("reindex </script>");
    }

    @Test
    void namesOfFilesAreEscaped() throws Exception {
        assertThat(report(SampleSnapshots.healthy(folder.resolve("a\"b<c.json"))))
                .contains("data-name=\"a&quot;b&lt;c.json\"");
    }

    @Test
    void severalSnapshotsAndGzippedOnesAreTakenToo() throws Exception {
        Path plain = SampleSnapshots.healthy(folder.resolve("plain.json"));
        Path packed = folder.resolve("packed.json.gz");
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(packed))) {
            Files.copy(plain, out);
        }

        String page = report(plain, packed);

        assertThat(page.split("class=\"snapshot\" data-name", -1)).hasSize(3);
        assertThat(page).contains("data-name=\"packed.json.gz\"");
    }

    @Test
    void whatIsNotASnapshotIsRefusedWithTheReason() throws Exception {
        assertThat(refusal("text", "no JSON")).contains("text: is not a snapshot");
        assertThat(refusal("cut", "{\"format\":\"cistern-snapshot\",")).contains("cut: is not a snapshot: ");
        assertThat(refusal("other", "{\"format\":\"other\",\"version\":1}"))
                .contains("'format' is other, not cistern-snapshot");
        assertThat(refusal("inner", "{\"runtime\":{\"format\":\"cistern-snapshot\",\"version\":1}}"))
                .contains("'runtime' has no 'driver'");
        assertThat(refusal("new", "{\"format\":\"cistern-snapshot\",\"version\":2}"))
                .contains("'version' is 2, not 1");
        String whole = Files.readString(SampleSnapshots.healthy(folder.resolve("whole.json")));
        assertThat(refusal("negative", whole.replaceFirst("\"byteSize\":\\d+", "\"byteSize\":-5")))
                .contains("'byteSize' is -5, less than 0");
        assertThat(refusal("two", whole + whole)).contains("something follows its end");
        assertThat(refusal("parts", whole.replaceFirst("\"blocks\":\\[", "\"blocks\":[7,")))
                .contains("a part of 'blocks' is of type integer, not object");
        ProgramRun nothing =
                ProgramRun.inProcess("report", folder.resolve("nothing").toString());
        assertThat(nothing.exitCode()).isEqualTo(2);
        assertThat(nothing.err().strip()).endsWith("nothing: no such file");
    }

    @Test
    void picklesOfPyTorchAreTakenToo() throws Exception {
        String page = report(SampleSnapshots.ofPyTorch(folder.resolve("torch.pickle")));

        assertThat(page)
                .contains("data-name=\"torch.pickle\"", "\"byteSize\":20971520", "\"event\":\"segmentAcquired\"");
    }

    @Test
    void anOutputThatCannotBeWrittenIsNamed() throws Exception {
        Path file = SampleSnapshots.healthy(folder.resolve("healthy.json"));

        ProgramRun run = ProgramRun.inProcess("report", file.toString(), "-o", "/dev/full");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).startsWith("cistern: --output /dev/full can't be written");
        assertThat(ProgramRun.inProcess("report", file.toString(), "-o", "/no/such/page.html")
                        .err()
                        .strip())
                .isEqualTo("cistern: --output /no/such/page.html can't be written: there is no such folder");
    }

    private String refusal(String name, String content) throws Exception {
        Path file = Files.writeString(folder.resolve(name), content);
        ProgramRun run = ProgramRun.inProcess(
                "report", file.toString(), "-o", folder.resolve("page").toString());
        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(folder.resolve("page")).doesNotExist();
        assertThat(run.err().lines()).hasSize(1);
        return run.err();
    }

    private String report(Path... snapshots) throws Exception {
        return Files.readString(make(folder.resolve("report.html"), snapshots));
    }

    /// Runs `cistern report`.
    static Path make(Path page, Path... snapshots) {
        String[] line = new String[snapshots.length + 3];
        line[0] = "report";
        line[1] = "-o";
        line[2] = page.toString();
        for (int i = 0; i < snapshots.length; i++) {
            line[i + 3] = snapshots[i].toString();
        }
        ProgramRun run = ProgramRun.inProcess(line);
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.err()).matches("cistern: .*\\.html, [0-9.]+ [KM]iB\\s*");
        return page;
    }
}
