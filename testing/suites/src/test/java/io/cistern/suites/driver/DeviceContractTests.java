package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.DriverFeature;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.Test;

/// Devices, attributes, capabilities.
abstract class DeviceContractTests extends DriverContractTests {
    DeviceContractTests(DriverContract suite) {
        super(suite);
    }

    @Test
    void thereIsADevice() {
        assertThat(driver.devices().count()).isPositive();
        assertThat(driver.devices().name(DEVICE)).isNotBlank();
        assertThat(driver.devices().totalBytes(DEVICE)).isPositive();
        assertThat(driver.devices().uuid(DEVICE)).isNotBlank();
    }

    @Test
    void everyDeviceHasItsOwnUuid() {
        int count = driver.devices().count();
        assertThat(java.util.stream.IntStream.range(0, count)
                        .mapToObj(driver.devices()::uuid)
                        .distinct())
                .hasSize(count);
    }

    @Test
    void anOrdinalOutOfRangeIsAnInvalidDevice() {
        int count = driver.devices().count();
        for (int device : new int[] {-1, count, Integer.MAX_VALUE}) {
            assertInvalidDevice(() -> driver.devices().name(device));
            assertInvalidDevice(() -> driver.devices().totalBytes(device));
            assertInvalidDevice(() -> driver.devices().attribute(device, DeviceAttribute.UNIFIED_ADDRESSING));
            assertInvalidDevice(() -> driver.devices().primaryContext(device));
            assertInvalidDevice(() -> driver.devices().isUsed(device));
            assertInvalidDevice(() -> driver.devices().synchronize(device));
            assertInvalidDevice(() -> driver.memory().allocate(device, 256));
            assertInvalidDevice(() -> driver.streams().create(device));
        }
    }

    @Test
    void aDeviceIsUsedFromItsFirstContextOn() {
        driver.devices().primaryContext(DEVICE);
        assertThat(driver.devices().isUsed(DEVICE)).isTrue();
    }

    private static void assertInvalidDevice(org.assertj.core.api.ThrowableAssert.ThrowingCallable action) {
        var failure = org.assertj.core.api.Assertions.catchThrowableOfType(io.cistern.cuda.CudaException.class, action);
        assertThat(failure).isNotNull();
        assertThat(failure.result()).isEqualTo(CudaResult.INVALID_DEVICE);
    }

    @Test
    void whoWantsToHearOfTheBudgetRegistersOrIsRefused() {
        try {
            long registration = driver.devices().onOverBudget(DEVICE, _ -> {});
            driver.devices().endOverBudget(DEVICE, registration);
        } catch (CudaException refused) {
            assertThat(refused.result()).isEqualTo(CudaResult.NOT_SUPPORTED);
            assertThat(driver.simulated()).isFalse();
        }
    }

    @Test
    void attributesOfOrdinaryThings() {
        assertThat(driver.devices().attribute(DEVICE, DeviceAttribute.UNIFIED_ADDRESSING))
                .isEqualTo(1);
        assertThat(driver.devices().attribute(DEVICE, DeviceAttribute.MULTIPROCESSOR_COUNT))
                .isPositive();
        assertThat(driver.devices().attribute(DEVICE, DeviceAttribute.MAX_THREADS_PER_BLOCK))
                .isPositive();
        assertThat(driver.devices().attribute(DEVICE, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR))
                .isPositive();
    }

    @Test
    void theCapabilitiesAgreeWithTheDevices() {
        assertThat(driver.capabilities().version()).isEqualTo(driver.version());
        assertThat(driver.capabilities().devices()).hasSize(driver.devices().count());
        for (DeviceCapabilities device : driver.capabilities().devices()) {
            assertThat(device.name()).isEqualTo(driver.devices().name(device.device()));
            assertThat(device.uuid()).isEqualTo(driver.devices().uuid(device.device()));
            assertThat(device.totalBytes()).isEqualTo(driver.devices().totalBytes(device.device()));
        }
    }

    @Test
    void everyNoHasAReason() {
        for (DeviceCapabilities device : driver.capabilities().devices()) {
            for (DriverFeature feature : DriverFeature.values()) {
                assertThat(device.supports(feature))
                        .satisfies(answer -> assertThat(answer.supported())
                                .isEqualTo(answer.reason().isEmpty()));
            }
        }
    }

    @Test
    void thePrimaryContextIsRetainedOnce() {
        assertThat(driver.devices().primaryContext(DEVICE))
                .isNotZero()
                .isEqualTo(driver.devices().primaryContext(DEVICE));
    }

    @Test
    void nativeCodeFindsThePrimaryContextAndAForeignOneComesBack() {
        long before = driver.devices().enterContext(DEVICE);
        long own = driver.devices().primaryContext(DEVICE);
        assertThat(driver.devices().enterContext(DEVICE)).isEqualTo(own);
        linear(256);
        driver.devices().leaveContext(DEVICE, own);
        driver.devices().leaveContext(DEVICE, before);
        assertThat(driver.devices().enterContext(DEVICE)).isEqualTo(before == 0 ? own : before);
        driver.devices().leaveContext(DEVICE, before);
    }

    @Test
    void theCurrentDeviceIsThatOfTheCurrentContext() {
        int last = driver.devices().count() - 1;
        long before = driver.devices().enterContext(last);
        assertThat(driver.devices().currentDevice()).isEqualTo(last);
        driver.devices().leaveContext(last, before);
    }

    @Test
    void synchronizeWaitsForEveryStream() {
        StreamLatch latch = latch();
        long first = stream();
        long second = stream();
        latch.hold(first);
        latch.hold(second);
        latch.release();
        driver.devices().synchronize(DEVICE);
        assertThat(driver.streams().isIdle(DEVICE, first)).isTrue();
        assertThat(driver.streams().isIdle(DEVICE, second)).isTrue();
    }

    @Test
    void callsAreCountedByFunction() {
        long before = driver.calls().of(DriverCall.MEM_ALLOC);
        linear(256);
        assertFails(() -> driver.memory().allocate(DEVICE, 0), DriverCall.MEM_ALLOC, CudaResult.INVALID_VALUE);
        assertThat(driver.calls().of(DriverCall.MEM_ALLOC)).isEqualTo(before + 2);
    }

    @Test
    void synchronizingAnIdleDeviceReturns() {
        assertThatCode(() -> driver.devices().synchronize(DEVICE)).doesNotThrowAnyException();
    }
}
