package io.cistern.javacpp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.cistern.DeviceMemory;
import io.cistern.handles.HandleException;
import io.cistern.handles.HandleLibrary;
import io.cistern.handles.HandlePool;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.jvm.CCompiler;
import io.cistern.jvm.FakeLibrary;
import io.cistern.jvm.JavaProgram;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.bytedeco.cuda.cublas.cublasContext;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The presets themselves, over libraries made for them.
class CudaLibrariesTests {
    private static final long WORKSPACE_BYTES = 32L << 20;

    /// Before the loader of JavaCPP looks for the real ones.
    @BeforeAll
    static void loadFakes() {
        assertThat(FakeCuda.isLoaded()).isEqualTo(CCompiler.find().isPresent());
    }

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
            .open();
    private final long stream = gpu.streams().create(0);
    private final long other = gpu.streams().create(0);

    /// @param refusal a status of the library, and its name
    private record Case(String library, Function<DeviceMemory, HandleLibrary<?>> maker, int status, String refusal) {
        @Override
        public String toString() {
            return library;
        }
    }

    static Stream<Case> libraries() {
        return Stream.of(
                new Case(
                        "libcublas.so.13",
                        CudaLibraries::cublas,
                        3,
                        "cuBLAS: creating a handle on device 0 failed:" + " CUBLAS_STATUS_ALLOC_FAILED (3)"),
                new Case("libcublasLt.so.13", CudaLibraries::cublasLt, 1, "CUBLAS_STATUS_NOT_INITIALIZED (1)"),
                new Case("libcudnn_graph.so.9", _ -> CudaLibraries.cudnn(), 1001, "CUDNN_STATUS_NOT_INITIALIZED"),
                new Case("libcusparse.so.12", _ -> CudaLibraries.cusparse(), 2, "CUSPARSE_STATUS_ALLOC_FAILED"),
                new Case("libcusolver.so.12", _ -> CudaLibraries.cusolver(), 7, "CUSOLVER_STATUS_INTERNAL_ERROR"));
    }

    CudaLibrariesTests() {
        memory.setCurrent("direct");
    }

    @AfterEach
    void close() {
        memory.close();
        assertThat(memory.liveBlocks()).isEmpty();
        gpu.close();
    }

    @ParameterizedTest
    @MethodSource("libraries")
    void aThreadsHandleHasItsStream(Case each) {
        FakeLibrary fake = FakeCuda.library(each.library);
        long createdBefore = fake.get("created");
        HandlePool<?> pool = HandlePool.open(memory, each.maker.apply(memory));
        Object handle = pool.handle(0, stream);
        assertThat(streamOf(handle, fake)).isEqualTo(stream);
        assertThat(pool.handle(0, other)).isSameAs(handle);
        assertThat(streamOf(handle, fake)).isEqualTo(other);
        assertThat(fake.get("created")).isEqualTo(createdBefore + 1);
        pool.close();
        assertThat(fake.get("destroyed")).isEqualTo(fake.get("created"));
        assertThat(pool.statistics(0).failedDestructions()).isZero();
    }

    private static long streamOf(Object handle, FakeLibrary fake) {
        return handle instanceof CublasLtHandle lt ? lt.stream().address() : fake.get("stream");
    }

    @ParameterizedTest
    @MethodSource("libraries")
    void aRefusalIsATypedErrorWithItsStatus(Case each) {
        FakeLibrary fake = FakeCuda.library(each.library);
        HandlePool<?> pool = HandlePool.open(memory, each.maker.apply(memory));
        fake.set("status", each.status);
        fake.set("failing", 2);
        assertThatExceptionOfType(HandleException.class)
                .isThrownBy(() -> pool.handle(0, stream))
                .withMessageContaining(each.refusal)
                .havingCause()
                .isInstanceOfSatisfying(
                        CudaLibraryException.class,
                        refused -> assertThat(refused.status()).isEqualTo(each.status));
        assertThat(pool.handle(0, stream)).isNotNull();
    }

    @Test
    void cublasHasAWorkspaceForEachStream() {
        FakeLibrary fake = FakeCuda.library("libcublas.so.13");
        HandlePool<cublasContext> pool = HandlePool.open(memory, CudaLibraries.cublas(memory));
        pool.handle(0, stream);
        long first = fake.get("workspace");
        assertThat(fake.get("bytes")).isEqualTo(WORKSPACE_BYTES);
        pool.handle(0, other);
        assertThat(fake.get("workspace")).isNotZero().isNotEqualTo(first);
        assertThat(memory.statistics(0).requestedBytes()).isEqualTo(2 * WORKSPACE_BYTES);
    }

    @Test
    void aHandleOfCublasLtCarriesItsWorkspace() {
        FakeCuda.library("libcublasLt.so.13");
        HandlePool<CublasLtHandle> pool = HandlePool.open(memory, CudaLibraries.cublasLt(memory));
        CublasLtHandle handle = pool.handle(0, stream);
        assertThat(handle.context().isNull()).isFalse();
        assertThat(handle.workspace().isNull()).isFalse();
        assertThat(handle.workspace().capacity()).isEqualTo(WORKSPACE_BYTES);
    }

    @Test
    void aProductArrivesWithItsPointersAndScalars() {
        FakeLibrary fake = FakeCuda.library("libcublas.so.13");
        HandlePool<cublasContext> pool = HandlePool.open(memory, CudaLibraries.cublas(memory));
        try (DevicePointer a = DevicePointer.allocate(memory, 4 * 6, 0, stream);
                DevicePointer b = DevicePointer.allocate(memory, 4 * 12, 0, stream);
                DevicePointer c = DevicePointer.allocate(memory, 4 * 8, 0, stream);
                FloatPointer two = new FloatPointer(2f);
                FloatPointer three = new FloatPointer(3f)) {
            int status = cublas.cublasSgemm_v2(
                    pool.handle(0, stream),
                    cublas.CUBLAS_OP_N,
                    cublas.CUBLAS_OP_N,
                    2,
                    4,
                    3,
                    two,
                    new FloatPointer(a),
                    2,
                    b.getPointer(FloatPointer.class),
                    3,
                    three,
                    new FloatPointer(c).position(1),
                    2);
            assertThat(status).isZero();
            assertThat(List.of(fake.get("m"), fake.get("n"), fake.get("k"), fake.get("ld")))
                    .containsExactly(2L, 4L, 3L, 20302L);
            assertThat(List.of(fake.get("a"), fake.get("b"), fake.get("c")))
                    .containsExactly(a.address(), b.address(), c.address() + 4);
            assertThat(List.of(fake.get("alpha"), fake.get("beta"))).containsExactly(2L, 3L);
        }
    }

    /// In a class loader that has no native libraries.
    @Test
    void aLibraryThatCannotBeLoadedSaysWhatToDo() throws Exception {
        URL[] withoutNativeParts = Stream.of(
                        CudaLibraries.class,
                        HandleLibrary.class,
                        Pointer.class,
                        cublas.class,
                        DeviceMemory.class,
                        io.cistern.cuda.CudaDriver.class)
                .map(type -> type.getProtectionDomain().getCodeSource().getLocation())
                .toArray(URL[]::new);
        try (URLClassLoader loader = new URLClassLoader(withoutNativeParts, ClassLoader.getPlatformClassLoader())) {
            Method cudnn = loader.loadClass(CudaLibraries.class.getName()).getMethod("cudnn");
            for (int attempt = 0; attempt < 2; attempt++) {
                assertThatExceptionOfType(InvocationTargetException.class)
                        .isThrownBy(() -> cudnn.invoke(null))
                        .havingCause()
                        .isInstanceOf(UnsupportedOperationException.class)
                        .withMessageContainingAll("cuDNN can't be loaded", "org.bytedeco:cuda", "LD_LIBRARY_PATH");
            }
        }
        assertThat(Arrays.stream(withoutNativeParts)).doesNotHaveDuplicates();
    }

    /// A program whose presets are there, on a machine without a GPU's driver. The first error of the presets names
    /// the driver, later ones do not.
    @Test
    void withoutADriverTheErrorNamesIt() throws Exception {
        assumeFalse(Files.exists(Path.of("/dev/nvidiactl")), "this machine has a driver");
        List<String> options =
                List.of("-cp", System.getProperty("java.class.path"), "--enable-native-access=ALL-UNNAMED");
        assertThat(new JavaProgram(WithoutDriver.class.getName(), options).run())
                .hasSize(2)
                .allSatisfy(line -> assertThat(line)
                        .contains("cuSPARSE can't be loaded", "libcuda.so.1, which this machine lacks")
                        .doesNotContain("add the native libraries"));
    }

    static final class WithoutDriver {
        private WithoutDriver() {}

        public static void main(String[] arguments) {
            for (int attempt = 0; attempt < 2; attempt++) {
                try {
                    CudaLibraries.cusparse();
                } catch (UnsupportedOperationException refused) {
                    System.out.println(refused.getMessage());
                }
            }
        }
    }
}
