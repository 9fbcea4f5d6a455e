package io.cistern.suites;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.LocalListener;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.cuda.process.Poll;
import io.cistern.cuda.process.ProcessDescriptor;
import io.cistern.cuda.process.SystemCallException;
import io.cistern.testkit.StreamLatch;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Runs one of the processes of [SharedPools]: carries out the commands that it reads, line by
/// line, and answers each.
final class SharingProcess {
    /// Follows the command in the answer if the driver refused a call.
    static final String REFUSED = " refused: ";

    private static final int DEVICE = 0;
    private static final Duration LONG = Duration.ofSeconds(30);
    private static final PrintStream OUT = new PrintStream(System.out, true, UTF_8);
    private static final HexFormat HEX = HexFormat.of();

    private final CudaDriver driver = DriverUnderTest.open();
    private final long stream = driver.streams().create(DEVICE);
    private @Nullable StreamLatch latch;
    private @Nullable LocalListener listener;
    private @Nullable Descriptor exported;
    private long pool;
    private long address;
    private long byteSize;
    private long ownEvent;
    private long openedEvent;

    private SharingProcess() {}

    /// Reads commands until the other side closes the stream.
    public static void main(String[] arguments) throws IOException {
        SharingProcess process = new SharingProcess();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            try {
                OUT.println(words[0] + " " + process.answer(words));
            } catch (CudaException refused) {
                OUT.println(words[0] + REFUSED + refused.getMessage());
            }
        }
        // Frees nothing, like a process that ends abruptly.
        Runtime.getRuntime().halt(0);
    }

    private Object answer(String... words) throws IOException {
        return switch (words[0]) {
            case "create" -> create();
            case "serve" -> serve(Path.of(words[1]));
            case "hand-over" -> handOver();
            case "import" -> importPool(Path.of(words[1]));
            case "fetch" -> fetch(Long.parseLong(words[1]), Integer.parseInt(words[2]));
            case "allocate" -> allocate(Long.parseLong(words[1]));
            case "export" -> HEX.formatHex(driver.sharing().exportPointer(DEVICE, address));
            case "map" -> map(HEX.parseHex(words[1]), Long.parseLong(words[2]));
            case "event" -> event();
            case "open" -> open(HEX.parseHex(words[1]));
            case "fill" -> fill(Integer.parseInt(words[1]));
            case "content" -> content();
            case "hold" -> hold();
            case "release" -> release();
            case "record" -> record();
            case "await" -> await();
            case "idle" -> driver.streams().isIdle(DEVICE, stream);
            case "gets-idle" -> getsIdle();
            case "has-passed" -> driver.events().hasPassed(DEVICE, openedEvent);
            case "record-for-other" -> recordForOther();
            case "range" -> driver.memory().range(DEVICE, address).byteSize();
            case "unmap" -> unmap();
            case "destroy" -> destroy();
            case "forget" -> forget();
            case "free-bytes" -> driver.memory().freeBytes(DEVICE);
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private String create() {
        int type = HandleType.POSIX_FILE_DESCRIPTOR.bit();
        pool = driver.pools().create(new MemoryPoolProperties(MemoryLocation.device(DEVICE), type, 0));
        exported = new Descriptor(driver.sharing().exportPool(DEVICE, pool));
        return ProcessHandle.current().pid() + " " + exported.number();
    }

    private String serve(Path path) throws IOException {
        listener = LocalListener.open(path);
        return "";
    }

    private String handOver() throws IOException {
        Poll.readable(LONG, Objects.requireNonNull(listener).descriptor().number());
        try (LocalSocket socket = listener.accept().orElseThrow()) {
            socket.send(new byte[] {1}, Objects.requireNonNull(exported));
        }
        return "";
    }

    private String importPool(Path path) throws IOException {
        try (LocalSocket socket = LocalSocket.connect(path)) {
            Poll.readable(LONG, socket.descriptor().number());
            try (Descriptor received =
                    socket.receive(1).orElseThrow().attached().orElseThrow()) {
                pool = driver.sharing().importPool(DEVICE, received.number());
            }
        }
        return openToItsDevice();
    }

    private String fetch(long pid, int number) throws IOException {
        try (ProcessDescriptor process = ProcessDescriptor.open(pid);
                Descriptor fetched = process.copyOf(number)) {
            pool = driver.sharing().importPool(DEVICE, fetched.number());
        } catch (SystemCallException notAllowed) {
            return "not allowed: " + notAllowed.getMessage();
        }
        return openToItsDevice();
    }

    private String openToItsDevice() {
        var rights = driver.pools().access(DEVICE, pool, DEVICE);
        if (rights != AccessRights.READ_WRITE) {
            driver.pools().setAccess(DEVICE, pool, DEVICE, AccessRights.READ_WRITE);
        }
        return "with " + rights;
    }

    private String allocate(long bytes) {
        byteSize = bytes;
        address = driver.pools().allocateFrom(DEVICE, pool, bytes, stream);
        return "";
    }

    private String map(byte[] pointer, long bytes) {
        byteSize = bytes;
        address = driver.sharing().importPointer(DEVICE, pool, pointer);
        return "";
    }

    private String event() {
        ownEvent = driver.sharing().createEvent(DEVICE);
        return HEX.formatHex(driver.sharing().exportEvent(DEVICE, ownEvent));
    }

    private String open(byte[] handle) {
        openedEvent = driver.sharing().openEvent(DEVICE, handle);
        return "";
    }

    private String fill(int value) {
        driver.copies().fillBytes(DEVICE, address, (byte) value, byteSize, stream);
        return "";
    }

    /// Returns the value of all bytes, or that they differ.
    private String content() {
        var bytes = driver.memory().allocateHost(DEVICE, byteSize);
        try {
            driver.copies().toHost(DEVICE, bytes, address, byteSize, stream);
            driver.streams().synchronize(DEVICE, stream);
            return bytes.asSlice(1).mismatch(bytes.asSlice(0, byteSize - 1)) == -1
                    ? Byte.toString(bytes.get(ValueLayout.JAVA_BYTE, 0))
                    : "different";
        } finally {
            driver.memory().freeHost(DEVICE, bytes);
        }
    }

    private String hold() {
        latch = new StreamLatch(driver, DEVICE);
        latch.hold(stream);
        return "";
    }

    private String release() {
        Objects.requireNonNull(latch).release();
        return "";
    }

    private String record() {
        driver.events().record(DEVICE, ownEvent, stream);
        return "";
    }

    private String await() {
        driver.streams().await(DEVICE, stream, openedEvent);
        return "";
    }

    /// Records the other process's event on an idle stream.
    private String recordForOther() {
        driver.events().record(DEVICE, openedEvent, driver.streams().create(DEVICE));
        return "";
    }

    /// Waits a moment for the stream to become idle.
    private boolean getsIdle() {
        long deadline = System.nanoTime() + Duration.ofMillis(200).toNanos();
        while (!driver.streams().isIdle(DEVICE, stream)) {
            if (System.nanoTime() > deadline) {
                return false;
            }
            Thread.onSpinWait();
        }
        return true;
    }

    private String unmap() {
        driver.pools().free(DEVICE, address, stream);
        driver.streams().synchronize(DEVICE, stream);
        address = 0;
        return "";
    }

    private String destroy() {
        driver.pools().destroy(DEVICE, pool);
        driver.devices().synchronize(DEVICE);
        pool = 0;
        return "";
    }

    /// Frees everything that is left, for the next test.
    private String forget() {
        if (latch != null) {
            latch.close();
            latch = null;
        }
        driver.devices().synchronize(DEVICE);
        if (address != 0) {
            unmap();
        }
        if (pool != 0) {
            destroy();
        }
        for (long event : new long[] {ownEvent, openedEvent}) {
            if (event != 0) {
                driver.events().destroy(DEVICE, event);
            }
        }
        ownEvent = 0;
        openedEvent = 0;
        if (exported != null) {
            exported.close();
            exported = null;
        }
        if (listener != null) {
            listener.close();
            listener = null;
        }
        return "";
    }
}
