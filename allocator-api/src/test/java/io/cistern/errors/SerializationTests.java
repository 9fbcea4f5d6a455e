package io.cistern.errors;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.BlockHistory;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.OutOfMemoryReport.AllocatorMemory;
import io.cistern.diagnostics.OutOfMemoryReport.ProcessMemory;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.diagnostics.TriedStep;
import io.cistern.diagnostics.UnusableMemory;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.AbstractList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Each exception of this package reaches another process whole, as Spark's executors send theirs to the driver.
final class SerializationTests {
    private static final BlockHistory BLOCK = new BlockHistory(
            4096, 100, 0, 7, List.of(new StackTraceElement("Program", "step", "Program.java", 3)), List.of());

    static List<Throwable> exceptions() {
        Throwable cause = new CudaException(DriverCall.MEM_CREATE, CudaResult.OUT_OF_MEMORY.code(), "byteSize=5");
        return List.of(
                new AllocatorContractException("broke it", cause),
                new ConfigurationException("no such option", cause),
                new DeviceOutOfMemoryException(5, 0, "caching has 7 bytes"),
                DeviceOutOfMemoryException.ofLimit(5, 0, "limit serving: 7 of 8 bytes", false),
                new DeviceOutOfMemoryException(
                        5, 0, "caching has 7 bytes", cause, List.of(new TriedStep(ReclaimStep.TRIM, 3, 1000, "busy"))),
                new DeviceOutOfMemoryException(5, 0, "caching has 7 bytes", cause).with(report()),
                new MemoryAsleepException("pool", 0, 4096),
                new MemoryMisuseException(MemoryMisuseException.Fault.WRONG_SIZE, 4096, "freed with 7 bytes"),
                new MemoryMisuseException(MemoryMisuseException.Fault.WRONG_SIZE, 4096, "freed with 7 bytes", BLOCK),
                new SharingException(SharingException.Reason.IN_USE, "still open", cause),
                new UnknownAddressException(4096),
                new UnknownAddressException(4100, BLOCK),
                new UnusableStreamException(0, 2, "a virtual thread"));
    }

    /// With everything that may be there or not, and lists that are made when they are read.
    private static OutOfMemoryReport report() {
        return new OutOfMemoryReport(
                5,
                0,
                7,
                OptionalLong.of(11),
                OptionalLong.empty(),
                List.of(
                        new AllocatorMemory(
                                "caching", "tag", OptionalLong.of(9), 7, 1, 2, List.of(new StreamMemory(7, 7, 2))),
                        new AllocatorMemory("direct", "", OptionalLong.empty(), 0, 0, 0, List.of())),
                List.of(new UnusableMemory(UnusableMemory.Reason.WAITING, 2, "stream 7", "synchronise")),
                List.of(new TriedStep(ReclaimStep.SYNCHRONIZE, 0, 2000)),
                lazy(new ProcessMemory(42, OptionalLong.of(13))),
                lazy("free some"));
    }

    private static <T> List<T> lazy(T only) {
        return new AbstractList<>() { // not serializable
            @Override
            public T get(int index) {
                return only;
            }

            @Override
            public int size() {
                return 1;
            }
        };
    }

    @ParameterizedTest
    @MethodSource("exceptions")
    void anExceptionSurvivesWhole(Throwable thrown) throws Exception {
        Throwable there = sent(thrown);
        assertThat(there)
                .usingRecursiveComparison()
                .ignoringFields("stackTrace", "cause.stackTrace")
                .isEqualTo(thrown);
        assertThat(there).hasMessage(thrown.getMessage());
        assertThat(there.getStackTrace()).isEqualTo(thrown.getStackTrace());
        if (thrown instanceof DeviceOutOfMemoryException refusal) {
            DeviceOutOfMemoryException refusalThere = (DeviceOutOfMemoryException) there;
            assertThat(refusalThere.report().map(OutOfMemoryReport::text))
                    .isEqualTo(refusal.report().map(OutOfMemoryReport::text));
            assertThat(refusalThere.steps()).isEqualTo(refusal.steps());
        }
    }

    @Test
    void allExceptionsAreTried() throws Exception {
        Set<Class<?>> tried = exceptions().stream().map(Throwable::getClass).collect(Collectors.toSet());
        assertThat(tried).isEqualTo(all());
    }

    private static Set<Class<?>> all() throws Exception {
        URI here = Objects.requireNonNull(ConfigurationException.class.getResource("ConfigurationException.class"))
                .toURI();
        try (Stream<Path> files =
                Files.list(Objects.requireNonNull(Path.of(here).getParent()))) {
            return files.map(file -> file.getFileName().toString())
                    .filter(file -> file.endsWith(".class"))
                    .map(file -> loaded(file.substring(0, file.length() - ".class".length())))
                    .filter(type -> Throwable.class.isAssignableFrom(type) && !Modifier.isAbstract(type.getModifiers()))
                    .collect(Collectors.toSet());
        }
    }

    private static Class<?> loaded(String name) {
        try {
            return Class.forName(ConfigurationException.class.getPackageName() + "." + name);
        } catch (ClassNotFoundException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static Throwable sent(Throwable thrown) throws IOException, ClassNotFoundException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(thrown);
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            return (Throwable) in.readObject();
        }
    }
}
