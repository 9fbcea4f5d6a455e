package io.cistern.simulated;

import static io.cistern.simulated.MachineFixture.MIB;
import static io.cistern.simulated.MemoryTests.assertFails;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.process.Descriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Two simulated machines, as if each were in a process of its own.
final class SharingTests {
    private final MachineFixture owner = MachineFixture.h200();
    private final MachineFixture guest = MachineFixture.h200();
    private final long ownerStream = owner.stream();
    private final long guestStream = guest.stream();
    private long pool;
    private long address;
    private long imported;

    @BeforeEach
    void share() {
        assumeTrue(Files.exists(Path.of("/proc/self/fd")), "Linux alone");
        int type = HandleType.POSIX_FILE_DESCRIPTOR.bit();
        pool = owner.gpu.pools().create(new MemoryPoolProperties(MemoryLocation.device(0), type, 0));
        // Not at the beginning of the pool.
        owner.gpu.pools().allocateFrom(0, pool, 40 * MIB, ownerStream);
        address = owner.gpu.pools().allocateFrom(0, pool, MIB, ownerStream);
        imported = importedPool();
    }

    @AfterEach
    void close() {
        owner.close();
        guest.close();
    }

    private long importedPool() {
        try (Descriptor exported = new Descriptor(owner.gpu.sharing().exportPool(0, pool))) {
            return guest.gpu.sharing().importPool(0, exported.number());
        }
    }

    private long mapped() {
        return guest.gpu
                .sharing()
                .importPointer(0, imported, owner.gpu.sharing().exportPointer(0, address));
    }

    @Test
    void bytesGoBothWays() {
        long there = mapped();
        owner.gpu.copies().fillWords(0, address, 0x1234_5678, MIB / 4, ownerStream);
        owner.gpu.streams().synchronize(0, ownerStream);
        assertThat(guest.mismatches(there, MIB / 4, 0x1234_5678, guestStream)).isZero();
        guest.gpu.copies().fillBytes(0, there + MIB / 2, (byte) 7, MIB / 2, guestStream);
        guest.gpu.streams().synchronize(0, guestStream);
        assertThat(owner.mismatches(address, MIB / 8, 0x1234_5678, ownerStream)).isZero();
        assertThat(owner.mismatches(address + MIB / 2, MIB / 8, 0x0707_0707, ownerStream))
                .isZero();
        assertThat(guest.gpu.misuses()).isEmpty();
    }

    /// The driver knows no interrupts of Java threads.
    @Test
    void interruptedThreadsShareToo() {
        Thread.currentThread().interrupt();
        share();
        bytesGoBothWays();
        aStreamWaitsForWhatTheOtherMachineRecorded();
        assertThat(Thread.interrupted()).isTrue();
    }

    @Test
    void aStreamWaitsForWhatTheOtherMachineRecorded() {
        long there = mapped();
        long event = owner.gpu.sharing().createEvent(0);
        long opened = guest.gpu.sharing().openEvent(0, owner.gpu.sharing().exportEvent(0, event));
        owner.hold(ownerStream);
        owner.gpu.copies().fillBytes(0, address, (byte) 5, MIB, ownerStream);
        owner.gpu.events().record(0, event, ownerStream);
        guest.gpu.streams().await(0, guestStream, opened);
        assertThat(guest.gpu.events().hasPassed(0, opened)).isFalse();
        assertThat(guest.gpu.streams().isIdle(0, guestStream)).isFalse();
        owner.open();
        assertThat(guest.read(there, guestStream)).isEqualTo(0x0505_0505);
        assertThat(guest.gpu.events().hasPassed(0, opened)).isTrue();
    }

    @Test
    void anEventThatWasNeverRecordedHoldsNobody() {
        long event = owner.gpu.sharing().createEvent(0);
        long opened = guest.gpu.sharing().openEvent(0, owner.gpu.sharing().exportEvent(0, event));
        assertThat(guest.gpu.events().hasPassed(0, opened)).isTrue();
        guest.gpu.streams().await(0, guestStream, opened);
        assertThat(guest.gpu.streams().isIdle(0, guestStream)).isTrue();
    }

    @Test
    void eitherSideRecordsAnEvent() {
        long event = owner.gpu.sharing().createEvent(0);
        long opened = guest.gpu.sharing().openEvent(0, owner.gpu.sharing().exportEvent(0, event));
        guest.hold(guestStream);
        guest.gpu.events().record(0, opened, guestStream);
        assertThat(owner.gpu.events().hasPassed(0, event)).isFalse();
        guest.open();
        owner.gpu.events().synchronize(0, event);
        assertThat(owner.gpu.events().hasPassed(0, event)).isTrue();
    }

    @Test
    void theOthersEndHoldsNobody() {
        long event = owner.gpu.sharing().createEvent(0);
        long opened = guest.gpu.sharing().openEvent(0, owner.gpu.sharing().exportEvent(0, event));
        owner.hold(ownerStream);
        owner.gpu.events().record(0, event, ownerStream);
        guest.gpu.streams().await(0, guestStream, opened);
        owner.gpu.close();
        guest.gpu.streams().synchronize(0, guestStream);
        assertThat(guest.gpu.events().hasPassed(0, opened)).isTrue();
    }

    @Test
    void whatIsMappedOutlivesTheOwner() {
        long there = mapped();
        owner.gpu.copies().fillBytes(0, address, (byte) 9, MIB, ownerStream);
        owner.gpu.streams().synchronize(0, ownerStream);
        owner.gpu.close();
        assertThat(guest.read(there, guestStream)).isEqualTo(0x0909_0909);
    }

    @Test
    void importedMemoryCostsNothingAndIsUnmappedInStreamOrder() {
        long free = guest.gpu.memory().freeBytes(0);
        long there = mapped();
        assertThat(guest.gpu.memory().freeBytes(0)).isEqualTo(free);
        assertThat(guest.gpu.memory().range(0, there).byteSize()).isEqualTo(MIB);
        guest.hold(guestStream);
        guest.gpu.copies().fillBytes(0, there, (byte) 3, MIB, guestStream);
        guest.gpu.pools().free(0, there, guestStream);
        guest.open();
        guest.gpu.streams().synchronize(0, guestStream);
        assertThat(owner.read(address, ownerStream)).isEqualTo(0x0303_0303);
        assertFails(CudaResult.INVALID_VALUE, () -> guest.gpu.pools().free(0, there, guestStream));
        guest.gpu.pools().destroy(0, imported);
    }

    @Test
    void anImportedPoolGivesNoMemoryOfItsOwn() {
        assertFails(CudaResult.OUT_OF_MEMORY, () -> guest.gpu.pools().allocateFrom(0, imported, MIB, guestStream));
        assertFails(CudaResult.INVALID_VALUE, () -> guest.gpu.sharing().exportPool(0, imported));
    }

    @Test
    void whatIsNoneOfThePoolsIsRefused() {
        byte[] forged = owner.gpu.sharing().exportPointer(0, address);
        forged[8] ^= 1;
        assertFails(CudaResult.INVALID_VALUE, () -> guest.gpu.sharing().importPointer(0, imported, forged));
        forged[8] ^= 1;
        forged[16] = 0x7f;
        assertFails(CudaResult.INVALID_VALUE, () -> guest.gpu.sharing().importPointer(0, imported, forged));
        assertFails(CudaResult.INVALID_VALUE, () -> guest.gpu.sharing().importPointer(0, imported, new byte[64]));
        assertFails(CudaResult.INVALID_VALUE, () -> guest.gpu.sharing().openEvent(0, new byte[64]));
        assertFails(CudaResult.INVALID_VALUE, () -> guest.gpu.sharing().importPool(0, 0));
    }

    @Test
    void anEventThatIsGoneCannotBeOpened() {
        long event = owner.gpu.sharing().createEvent(0);
        byte[] handle = owner.gpu.sharing().exportEvent(0, event);
        owner.gpu.events().destroy(0, event);
        assertFails(CudaResult.INVALID_VALUE, () -> guest.gpu.sharing().openEvent(0, handle));
    }

    @Test
    void nothingIsLeftOpenAfterwards() throws Exception {
        long before = openFiles();
        for (int i = 0; i < 20; i++) {
            long other = importedPool();
            guest.gpu.pools().destroy(0, other);
            long event = owner.gpu.sharing().createEvent(0);
            guest.gpu
                    .events()
                    .destroy(
                            0,
                            guest.gpu.sharing().openEvent(0, owner.gpu.sharing().exportEvent(0, event)));
            owner.gpu.events().destroy(0, event);
        }
        assertThat(openFiles()).isLessThan(before + 10);
    }

    private static long openFiles() throws Exception {
        try (var files = Files.list(Path.of("/proc/self/fd"))) {
            return files.count();
        }
    }

    @Test
    void faultsAreMadeOnDemand() {
        guest.gpu.faults().failOn(DriverCall.MEM_POOL_IMPORT_POINTER, 0, 1, CudaResult.OUT_OF_MEMORY);
        assertFails(CudaResult.OUT_OF_MEMORY, this::mapped);
        assertThat(mapped()).isNotZero();
    }
}
