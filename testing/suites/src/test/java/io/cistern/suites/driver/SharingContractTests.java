package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.Sharing;
import io.cistern.cuda.process.Descriptor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// The exports of one process. `io.cistern.suites.SharedPools` tests two processes.
@EnabledOnOs(OS.LINUX)
abstract class SharingContractTests extends DriverContractTests {
    private long shareable;

    SharingContractTests(DriverContract suite) {
        super(suite);
    }

    @BeforeEach
    void needsDescriptors() {
        var support = driver.capabilities().devices().get(DEVICE).supports(DriverFeature.POSIX_FILE_DESCRIPTOR);
        assumeTrue(support.supported(), support.reason());
        int type = HandleType.POSIX_FILE_DESCRIPTOR.bit();
        shareable = driver.pools().create(new MemoryPoolProperties(MemoryLocation.device(DEVICE), type, 0));
        afterwards(() -> driver.pools().destroy(DEVICE, shareable));
    }

    private long allocateFrom(long pool) {
        long stream = stream();
        long address = driver.pools().allocateFrom(DEVICE, pool, MIB, stream);
        afterwards(() -> driver.pools().free(DEVICE, address, stream));
        return address;
    }

    @Test
    void eachExportIsADescriptorOfItsOwnThatNewProgramsDoNotInherit() throws IOException {
        try (Descriptor one = new Descriptor(driver.sharing().exportPool(DEVICE, shareable));
                Descriptor another = new Descriptor(driver.sharing().exportPool(DEVICE, shareable))) {
            assertThat(one.number()).isNotEqualTo(another.number());
            assertThat(closedOnExec(one)).isTrue();
        }
        allocateFrom(shareable);
    }

    private static boolean closedOnExec(Descriptor descriptor) throws IOException {
        return Files.readAllLines(Path.of("/proc/self/fdinfo/" + descriptor.number())).stream()
                .filter(line -> line.startsWith("flags:"))
                .anyMatch(line -> (Long.parseLong(line.substring(6).strip(), 8) & 0x80000) != 0);
    }

    @Test
    void aPoolThatWasNotMadeForItIsNotExported() {
        long plain = pool();
        assertFails(
                () -> driver.sharing().exportPool(DEVICE, plain), DriverCall.MEM_POOL_EXPORT, CudaResult.INVALID_VALUE);
        long defaultPool = driver.pools().defaultPool(DEVICE);
        assertFails(
                () -> driver.sharing().exportPool(DEVICE, defaultPool),
                DriverCall.MEM_POOL_EXPORT,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void pointersAreExportedOnceThePoolWas() throws IOException {
        long before = allocateFrom(shareable);
        assertFails(
                () -> driver.sharing().exportPointer(DEVICE, before),
                DriverCall.MEM_POOL_EXPORT_POINTER,
                CudaResult.INVALID_VALUE);
        new Descriptor(driver.sharing().exportPool(DEVICE, shareable)).close();
        byte[] pointer = driver.sharing().exportPointer(DEVICE, before);
        byte[] another = driver.sharing().exportPointer(DEVICE, allocateFrom(shareable));
        assertThat(pointer).hasSize(Sharing.HANDLE_BYTES).isNotEqualTo(another);
    }

    @Test
    void otherPointersAreNot() {
        long linear = linear(MIB);
        assertFails(
                () -> driver.sharing().exportPointer(DEVICE, linear),
                DriverCall.MEM_POOL_EXPORT_POINTER,
                CudaResult.INVALID_VALUE,
                CudaResult.NOT_SUPPORTED);
        long plain = allocateFrom(pool());
        assertFails(
                () -> driver.sharing().exportPointer(DEVICE, plain),
                DriverCall.MEM_POOL_EXPORT_POINTER,
                CudaResult.INVALID_VALUE,
                CudaResult.NOT_SUPPORTED);
    }

    @Test
    void theOlderHandleIsForLinearMemoryAlone() {
        assertThat(driver.sharing().legacyHandle(DEVICE, linear(MIB))).hasSize(Sharing.HANDLE_BYTES);
        for (long pooled : new long[] {allocateFrom(shareable), allocateFrom(pool())}) {
            assertThat(assertFails(
                            () -> driver.sharing().legacyHandle(DEVICE, pooled),
                            DriverCall.IPC_GET_MEM_HANDLE,
                            CudaResult.INVALID_VALUE))
                    .hasMessageContaining(Sharing.ONLY_LINEAR);
        }
    }

    @Test
    void aSharedEventIsAnEventLikeOthers() {
        long stream = stream();
        long event = driver.sharing().createEvent(DEVICE);
        afterwards(() -> driver.events().destroy(DEVICE, event));
        assertThat(driver.events().hasPassed(DEVICE, event)).isTrue();
        latch().hold(stream);
        driver.events().record(DEVICE, event, stream);
        assertThat(driver.events().hasPassed(DEVICE, event)).isFalse();
        assertThat(driver.sharing().exportEvent(DEVICE, event)).hasSize(Sharing.HANDLE_BYTES);
    }

    @Test
    void anOrdinaryEventIsNotExported() {
        long event = event();
        assertFails(
                () -> driver.sharing().exportEvent(DEVICE, event),
                DriverCall.IPC_GET_EVENT_HANDLE,
                CudaResult.INVALID_HANDLE,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void aDescriptorThatIsNoPoolIsNotImported() throws IOException {
        try (Descriptor nothing = Descriptor.ofMemory("no pool")) {
            assertFails(
                    () -> driver.sharing().importPool(DEVICE, nothing.number()),
                    DriverCall.MEM_POOL_IMPORT,
                    CudaResult.INVALID_VALUE,
                    CudaResult.INVALID_HANDLE,
                    CudaResult.OPERATING_SYSTEM,
                    CudaResult.INVALID_DEVICE,
                    CudaResult.UNKNOWN);
        }
    }

    @Test
    void fabricHandlesAreExportedOrRefusedWithTheReason() {
        var support = driver.capabilities().devices().get(DEVICE).supports(DriverFeature.FABRIC);
        assumeTrue(support.supported(), support.reason());
        int type = HandleType.FABRIC.bit();
        long pool = driver.pools().create(new MemoryPoolProperties(MemoryLocation.device(DEVICE), type, 0));
        afterwards(() -> driver.pools().destroy(DEVICE, pool));
        assertThat(driver.sharing().exportPoolToFabric(DEVICE, pool)).hasSize(Sharing.HANDLE_BYTES);
    }
}
