package io.cistern.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cli.common.InputException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Traces are read right, and whatever is wrong with one is told with file and line.
final class TraceReaderTests {
    private static final String HEADER = "op,id,bytes,stream\n";
    private static final String HEADERS = "op,id,bytes,stream or op,id,bytes,stream,device,thread,nanos[,stack]";

    @Test
    void idsBecomeSlotsThatAreUsedAgainAfterTheirFree() throws Exception {
        Trace trace = read("a,70,100,5\na,80,200,6\nf,70,0,5\na,90,50,6\nf,80,0,6\nf,90,0,6\n");

        assertThat(trace.ops())
                .containsExactly(Trace.ALLOCATE, Trace.ALLOCATE, Trace.FREE, Trace.ALLOCATE, Trace.FREE, Trace.FREE);
        assertThat(trace.slots()).containsExactly(0, 1, 0, 0, 1, 0);
        assertThat(trace.byteSizes()).containsExactly(100, 200, 0, 50, 0, 0);
        assertThat(trace.streams()).containsExactly(0, 1, 0, 1, 1, 1);
        assertThat(trace.slotCount()).isEqualTo(2);
        assertThat(trace.streamCount()).isEqualTo(2);
        assertThat(trace.requestedPeakBytes()).isEqualTo(300);
    }

    @Test
    void anIdMayComeAgainAfterItsFree() throws Exception {
        assertThat(read("a,1,8,0\nf,1,0,0\na,1,16,0\nf,1,0,0\n").operations()).isEqualTo(4);
    }

    /// As a map of the live ids says: each free finds the slot of its allocation, however far apart the ids are.
    @Test
    void manyIdsOfAnySizeKeepTheirSlots() throws Exception {
        long seed = 20_260_101L;
        Random random = new Random(seed);
        StringBuilder rows = new StringBuilder();
        Map<Long, Integer> live = new HashMap<>();
        List<Long> freed = new ArrayList<>();
        for (int row = 0; row < 100_000; row++) {
            long id = random.nextBoolean() ? random.nextInt(30_000) : random.nextLong(Long.MAX_VALUE);
            boolean isLive = live.remove(id) != null;
            if (!isLive) {
                live.put(id, row);
            } else {
                freed.add(id);
            }
            rows.append(isLive ? "f," : "a,").append(id).append(",8,0\n");
        }
        Trace trace = read(rows.toString());
        String[] lines = rows.toString().split("\n");
        Map<String, Integer> slots = new HashMap<>();
        for (int row = 0; row < lines.length; row++) {
            String id = lines[row].split(",")[1];
            if (trace.ops()[row] == Trace.ALLOCATE) {
                slots.put(id, trace.slots()[row]);
            } else {
                assertThat(trace.slots()[row]).as("seed %s, row %s", seed, row).isEqualTo(slots.remove(id));
            }
        }
        assertThat(trace.slotCount()).isGreaterThanOrEqualTo(live.size());
        long gone =
                freed.stream().filter(id -> !live.containsKey(id)).findFirst().orElseThrow();
        assertThatThrownBy(() -> read(rows + "f," + gone + ",8,0\n")).hasMessageContaining("which was freed before");
    }

    @Test
    void aBlockIsFreedOnItsOwnStreamWhateverTheRowSays() throws Exception {
        assertThat(read("a,1,8,3\na,2,8,4\nf,1,0,4\n").streams()).containsExactly(0, 1, 0);
    }

    @Test
    void linesMayEndTheWindowsWayAndTheLastOneNotAtAll() throws Exception {
        Trace trace = TraceReader.read("t.csv", bytes("op,id,bytes,stream\r\na,1,8,0\r\nf,1,0,0"));

        assertThat(trace.operations()).isEqualTo(2);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        f,7,0,0                              | 2 | frees id 7, which was never allocated
        a,7,8,0;a,7,8,0                      | 3 | allocates id 7, which is still live
        a,7,8,0;f,7,0,0;f,7,0,0              | 4 | frees id 7, which was freed before
        a,7,-8,0                             | 2 | negative size
        a,-7,8,0                             | 2 | negative id
        a,7,8,-1                             | 2 | negative stream
        a,7,1152921504606846977,0            | 2 | size over 1 EiB: 1152921504606846977
        a,7,99999999999999999999999,0        | 2 | size over 1 EiB: 99999999999999999999999
        a,7,eight,0                          | 2 | size is not a whole number
        a,x,8,0                              | 2 | id is not a whole number
        a,7,8,zero                           | 2 | stream is not a whole number
        a,7,8.5,0                            | 2 | size is not a whole number
        a,7,,0                               | 2 | no size
        a,7,8                                | 2 | short row; expected op,id,bytes,stream
        f,7                                  | 2 | short row; expected op,id,bytes,stream
        a,7,8,0;;f,7,0,0                     | 3 | short row; expected op,id,bytes,stream
        a,7,8,0,9                            | 2 | stream is not a whole number
        b,7,8,0                              | 2 | op must be a or f
        """)
    void aWrongRowIsNamedByItsLine(String rows, int line, String what) {
        assertThatThrownBy(() -> read(rows.replace(';', '\n') + "\n"))
                .isInstanceOf(InputException.class)
                .hasMessage("t.csv:" + line + ": " + what);
    }

    private static final String HEADER_2 = "op,id,bytes,stream,device,thread,nanos\n";

    private static Trace readSecond(String rows) throws InputException, IOException {
        return TraceReader.read("t.csv", bytes(HEADER_2 + rows));
    }

    @Test
    void formatTwoHasWaitsUsesAndEndsBesides() throws Exception {
        Trace trace = readSecond("a,70,100,5,0,1,10\nw,5,0,6,0,1,20\nu,70,0,6,0,1,30\nw,6,0,5,0,2,40\n"
                + "o,0,999,5,0,2,45\nf,70,100,5,0,2,50\ne,0,0,6,0,1,60\n");

        assertThat(trace.ops())
                .containsExactly(Trace.ALLOCATE, Trace.WAIT, Trace.USE, Trace.WAIT, Trace.FREE, Trace.END);
        assertThat(trace.slots()).containsExactly(0, 0, 0, 1, 0, 0);
        assertThat(trace.streams()).containsExactly(0, 1, 1, 0, 0, 1);
        assertThat(trace.operations()).isEqualTo(2);
        assertThat(trace.requestedPeakBytes()).isEqualTo(100);
    }

    @Test
    void aTrimIsOnAStreamOfItsDeviceIfThereIsOne() throws Exception {
        Trace trace = readSecond("t,0,0,0,1,1,0\na,1,8,5,0,1,0\na,2,8,6,1,1,0\na,3,8,7,1,1,0\nt,0,0,0,1,2,0\n");

        assertThat(trace.ops()).containsExactly(Trace.ALLOCATE, Trace.ALLOCATE, Trace.ALLOCATE, Trace.TRIM);
        assertThat(trace.streams()).containsExactly(0, 1, 2, 1);
        assertThat(trace.origins().threads()).containsExactly(0, 0, 0, 1);
        assertThat(trace.operations()).isEqualTo(3);
    }

    @Test
    void whatNoRowOrderedIsOrdered() throws Exception {
        Trace trace = readSecond("a,1,8,5,0,0,0\nu,1,0,6,0,0,0\nu,99,0,6,0,0,0\nf,1,0,7,0,0,0\n");

        assertThat(trace.ops())
                .as("a wait for the allocation before the use and the free; the use is recorded, so the free needs"
                        + " none")
                .containsExactly(Trace.ALLOCATE, Trace.WAIT, Trace.USE, Trace.WAIT, Trace.FREE);
        assertThat(trace.slots()).containsExactly(0, 0, 0, 0, 0);
        assertThat(trace.streams()).containsExactly(0, 1, 1, 2, 2);
    }

    @Test
    void theSameHandleOnAnotherDeviceOrAfterItsEndIsAnotherStream() throws Exception {
        assertThat(readSecond("a,1,8,5,0,0,0\na,2,8,5,1,0,0\n").streams()).containsExactly(0, 1);
        Trace ended = readSecond("a,1,8,5,0,0,0\na,2,8,6,0,0,0\ne,0,0,5,0,0,0\na,3,8,7,0,0,0\na,4,8,5,0,0,0\n");
        assertThat(ended.streams()).containsExactly(0, 1, 0, 0, 2);
    }

    @Test
    void rowsKnowTheirThreadsAndStreamsTheirDevices() throws Exception {
        Trace trace = readSecond("a,1,8,5,3,70,0\na,2,4,5,1,90,0\ne,0,0,5,3,70,0\na,3,2,6,1,90,0\nf,2,0,6,1,80,0\n");

        assertThat(trace.origins().threads()).containsExactly(0, 1, 0, 1, 2, 2);
        assertThat(trace.origins().threadCount()).isEqualTo(3);
        assertThat(trace.origins().devices()).as("of streams").containsExactly(0, 1, 1);
        assertThat(trace.origins().devicePeakBytes()).containsExactly(8, 6);
        assertThat(trace.origins().mixed()).isFalse();
        assertThat(trace.requestedPeakBytes()).isEqualTo(14);
        assertThat(trace.onOneThread().onOneDevice().origins().devicePeakBytes())
                .containsExactly(14);
    }

    @Test
    void aBlockThatAnotherDeviceUsesOrFreesMixesDevices() throws Exception {
        assertThat(readSecond("a,1,8,5,0,0,0\nu,1,0,5,1,0,0\n").origins().mixed())
                .isTrue();
        assertThat(readSecond("a,1,8,5,0,0,0\nf,1,0,5,1,0,0\n").origins().mixed())
                .isTrue();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        a,7,8,0                  | short row; expected op,id,bytes,stream,device,thread,nanos
        f,7,8,0,0,0,0            | frees id 7, which was never allocated
        b,7,8,0,0,0,0            | op must be a, f, u, w, e, o or t
        t,0,0,0,-1,0,0           | negative device
        t,0,0,0                  | short row; expected op,id,bytes,stream,device,thread,nanos
        a,7,8,0,x,0,0            | device is not a whole number
        a,7,8,0,0,0,0,0          | time is not a whole number
        a,7,8,0,0,-1,0           | negative thread
        """)
    void aWrongRowOfFormatTwoIsNamed(String row, String what) {
        assertThatThrownBy(() -> readSecond(row + "\n"))
                .isInstanceOf(InputException.class)
                .hasMessage("t.csv:2: " + what);
    }

    @Test
    void sizesUpToAnExbibyteAreTakenUntilTheirSumOverflows() throws Exception {
        String row = ",1152921504606846976,0\n";
        assertThat(read("a,1" + row).requestedPeakBytes()).isEqualTo(1L << 60);

        StringBuilder rows = new StringBuilder();
        for (int id = 0; id < 8; id++) {
            rows.append("a,").append(id).append(row);
        }
        assertThatThrownBy(() -> read(rows.toString())).hasMessage("t.csv:9: more than 8 EiB live at once");
    }

    @Test
    void aFileWithoutHeaderOrRowsIsRefused() {
        assertThatThrownBy(() -> TraceReader.read("t.csv", bytes("")))
                .hasMessage("t.csv:1: empty file; the first line must be " + HEADERS);
        assertThatThrownBy(() -> TraceReader.read("t.csv", bytes("a,1,8,0\n")))
                .hasMessage("t.csv:1: no header; the first line must be " + HEADERS);
        assertThatThrownBy(() -> TraceReader.read("t.csv", bytes(HEADER)))
                .hasMessage("t.csv:2: no rows after the header");
    }

    @Test
    void aByteOrderMarkIsPassedOver() throws Exception {
        byte[] text = ("\ufeff" + HEADER + "a,1,8,0\n").getBytes(StandardCharsets.UTF_8);

        assertThat(TraceReader.read("t.csv", new ByteArrayInputStream(text)).operations())
                .isEqualTo(1);
    }

    @Test
    void gzippedTracesAreRead() throws Exception {
        assertThat(TraceReader.read("t.csv.gz", new ByteArrayInputStream(gzip(HEADER + "a,1,8,0\n")))
                        .operations())
                .isEqualTo(1);
    }

    @Test
    void aCutGzipFileIsToldFromACorruptOne() throws Exception {
        byte[] whole = gzip(HEADER + "a,1,8,0\nf,1,0,0\n".repeat(1000));
        byte[] cut = java.util.Arrays.copyOf(whole, whole.length - 12);
        byte[] corrupt = whole.clone();
        corrupt[whole.length - 6] ^= 1; // in the checksum

        assertThatThrownBy(() -> readGzip(cut))
                .isInstanceOf(InputException.class)
                .hasMessageMatching("t\\.csv\\.gz:\\d+: the file is cut off at byte \\d+ of the unpacked data");
        assertThatThrownBy(() -> readGzip(corrupt))
                .isInstanceOf(InputException.class)
                .hasMessageMatching("t\\.csv\\.gz:\\d+: the compressed data is damaged: .*");
    }

    @Test
    void anEndlessLineEndsAfterAFewHundredBytes() {
        InputStream endless = new InputStream() {
            @Override
            public int read() {
                return 'a';
            }
        };
        Assertions.assertTimeoutPreemptively(
                Duration.ofSeconds(10),
                () -> assertThatThrownBy(() -> TraceReader.read("t.csv", endless))
                        .hasMessage("t.csv:1: line longer than 256 bytes"));
    }

    @Test
    void aFileThatUnpacksToMoreRowsThanAnybodyHasIsRefused() throws Exception {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (OutputStream out = new GZIPOutputStream(packed, 1 << 16)) {
            out.write(HEADER.getBytes(StandardCharsets.US_ASCII));
            byte[] pairs = "a,1,8,0\nf,1,0,0\n".repeat(1 << 12).getBytes(StandardCharsets.US_ASCII);
            for (int i = 0; i <= Trace.MAX_ROWS >> 13; i++) {
                out.write(pairs);
            }
        }
        assertThatThrownBy(() -> readGzip(packed.toByteArray()))
                .hasMessage("t.csv.gz:" + (Trace.MAX_ROWS + 2) + ": more than " + Trace.MAX_ROWS + " rows");
    }

    @Test
    void moreStreamsThanAnybodyHasAreRefused() {
        StringBuilder rows = new StringBuilder();
        for (int id = 0; id <= Trace.MAX_STREAMS; id++) {
            rows.append("a,").append(id).append(",8,").append(id).append('\n');
        }
        assertThatThrownBy(() -> read(rows.toString())).hasMessage("t.csv:1026: more than 1024 streams");
    }

    @Test
    void filesThatCanNotBeOpenedAreNamed(@TempDir Path folder) {
        assertThatThrownBy(() -> TraceReader.read(folder.resolve("none.csv")))
                .isInstanceOf(InputException.class)
                .hasMessage(folder.resolve("none.csv") + ": no such file");
        assertThatThrownBy(() -> TraceReader.read(folder)).hasMessageContaining("is a folder");
    }

    @Test
    void theTracesShippedAreThere() throws Exception {
        assertThat(BundledTraces.readAll())
                .extracting(Trace::name, Trace::operations, Trace::streamCount)
                .containsExactly(
                        org.assertj.core.groups.Tuple.tuple("gpt2_train", 35_171, 1),
                        org.assertj.core.groups.Tuple.tuple("resnet_train", 20_219, 1),
                        org.assertj.core.groups.Tuple.tuple("llama_generate", 328_871, 1),
                        org.assertj.core.groups.Tuple.tuple("gnn_sample", 18_262, 1),
                        org.assertj.core.groups.Tuple.tuple("vit_streams", 33_872, 5));
    }

    private static Trace read(String rows) throws InputException, IOException {
        return TraceReader.read("t.csv", bytes(HEADER + rows));
    }

    private static Trace readGzip(byte[] packed) throws InputException, IOException {
        return TraceReader.read("t.csv.gz", new ByteArrayInputStream(packed));
    }

    private static InputStream bytes(String text) {
        return new ByteArrayInputStream(text.getBytes(StandardCharsets.US_ASCII));
    }

    private static byte[] gzip(String text) throws IOException {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (OutputStream out = new GZIPOutputStream(packed)) {
            out.write(text.getBytes(StandardCharsets.US_ASCII));
        }
        return packed.toByteArray();
    }
}
