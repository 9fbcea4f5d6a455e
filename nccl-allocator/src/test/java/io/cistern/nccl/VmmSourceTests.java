package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.argThat;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.Devices;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.DriverCapabilities;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.Support;
import io.cistern.cuda.VirtualMemory;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.nccl.internal.segment.VmmOptions;
import io.cistern.nccl.internal.segment.VmmSource;
import io.cistern.spi.PageTraits;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class VmmSourceTests {
    private static final long GRANULE = 2 << 20;
    private static final VmmOptions ON_DEVICE =
            new VmmOptions(false, OptionalInt.empty(), Optional.empty(), Optional.empty(), 1);
    private static final VmmOptions ON_HOST =
            new VmmOptions(true, OptionalInt.empty(), Optional.empty(), Optional.empty(), 1);

    private final CudaDriver driver = mock(CudaDriver.class);
    private final VirtualMemory memory = mock(VirtualMemory.class);
    private final Devices devices = mock(Devices.class);
    private final Map<DriverFeature, Support> features = new EnumMap<>(DriverFeature.class);

    @BeforeEach
    void driverWithEverything() {
        for (DriverFeature feature : DriverFeature.values()) {
            features.put(feature, Support.yes());
        }
        when(driver.virtualMemory()).thenReturn(memory);
        when(driver.devices()).thenReturn(devices);
        when(driver.capabilities()).thenAnswer(call -> capabilities());
        when(memory.granularity(any(), anyBoolean())).thenReturn(GRANULE);
        when(memory.create(anyLong(), any())).thenReturn(9L);
    }

    @Test
    void autoTakesTheWidestHandleThatWorksAndNetworkAccess() {
        assertThat(traits(ON_DEVICE)).isEqualTo(new PageTraits(GRANULE, "device", "fabric", true));
    }

    @Test
    void aRefusedFabricHandleFallsBackToAFileDescriptor() {
        refuse(HandleType.FABRIC, CudaResult.NOT_PERMITTED);
        assertThat(traits(ON_DEVICE).handleType()).isEqualTo("posix_fd");
    }

    @Test
    void withoutAnyHandleMemoryStaysInTheProcess() {
        features.put(DriverFeature.FABRIC, Support.no("no fabric"));
        refuse(HandleType.POSIX_FILE_DESCRIPTOR, CudaResult.NOT_SUPPORTED);
        assertThat(traits(ON_DEVICE).handleType()).isEqualTo("none");
        verify(memory, never()).create(anyLong(), argThat(kind -> kind.handleTypes() == HandleType.FABRIC.bit()));
    }

    @Test
    void theTrialIsMadeOnceAndReleased() {
        VmmSource source = new VmmSource(driver, ON_DEVICE, 1);
        source.traits(0);
        source.traits(0);
        verify(memory, times(1)).create(GRANULE, new PhysicalMemory(MemoryLocation.device(0), 8, true, 0));
        verify(memory).release(0, 9);
    }

    @Test
    void aTrialThatTheDriverKeepsIsReleasedAgain() {
        doThrow(new CudaException(DriverCall.MEM_RELEASE, CudaResult.UNKNOWN.code(), "in a test"))
                .doNothing()
                .when(memory)
                .release(0, 9);
        assertThat(traits(ON_DEVICE).handleType()).isEqualTo("fabric");
        verify(memory, times(2)).release(0, 9);
    }

    @Test
    void aDeviceWithoutNetworkAccessSaysSo() {
        features.put(DriverFeature.RDMA, Support.no("no driver for it"));
        assertThat(traits(ON_DEVICE).rdma()).isFalse();
    }

    @Test
    void hostMemoryComesFromTheNearestNode() {
        when(devices.attribute(0, DeviceAttribute.HOST_NUMA_ID)).thenReturn(3);
        VmmSource source = new VmmSource(driver, ON_HOST, 1);
        assertThat(source.traits(0).location()).isEqualTo("host_numa:3");
        source.create(5 * GRANULE, 0);
        verify(memory).create(5 * GRANULE, new PhysicalMemory(MemoryLocation.hostNuma(3), 8, false, 0));
    }

    @Test
    void aNodeCanBeNamed() {
        VmmOptions node = new VmmOptions(true, OptionalInt.of(1), Optional.empty(), Optional.empty(), 1);
        assertThat(traits(node).location()).isEqualTo("host_numa:1");
    }

    @Test
    void whatWasAskedForByNameMustBePossible() {
        features.put(DriverFeature.FABRIC, Support.no("no IMEX channel: create one"));
        VmmOptions fabric =
                new VmmOptions(false, OptionalInt.empty(), Optional.of(HandleType.FABRIC), Optional.empty(), 1);
        assertThatThrownBy(() -> fabric.requireSupport(capabilities()))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("handle=fabric")
                .hasMessageContaining("no IMEX channel: create one");
        ON_DEVICE.requireSupport(capabilities());
    }

    @Test
    void noMemoryIsTheErrorWorthARetry() {
        VmmSource source = new VmmSource(driver, ON_DEVICE, 1);
        source.traits(0);
        when(memory.create(anyLong(), any())).thenThrow(failure(CudaResult.OUT_OF_MEMORY));
        assertThatThrownBy(() -> source.create(GRANULE, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
    }

    @Test
    void aHandleGoesBackToItsDevice() {
        new VmmSource(driver, ON_DEVICE, 2).release(77, GRANULE, 1);
        verify(memory).release(1, 77);
    }

    private PageTraits traits(VmmOptions options) {
        return new VmmSource(driver, options, 1).traits(0);
    }

    private void refuse(HandleType handle, CudaResult result) {
        when(memory.create(anyLong(), argThat(kind -> kind != null && kind.handleTypes() == handle.bit())))
                .thenThrow(failure(result));
    }

    private DriverCapabilities capabilities() {
        return new DriverCapabilities(
                13000, List.of(), List.of(new DeviceCapabilities(0, "test", "uuid", 1L << 30, 90, GRANULE, features)));
    }

    private static CudaException failure(CudaResult result) {
        return new CudaException(DriverCall.MEM_CREATE, result.code(), "in a test");
    }
}
