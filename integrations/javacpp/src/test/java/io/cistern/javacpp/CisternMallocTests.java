package io.cistern.javacpp;

import static io.cistern.javacpp.CisternMalloc.cudaFree;
import static io.cistern.javacpp.CisternMalloc.cudaFreeAsync;
import static io.cistern.javacpp.CisternMalloc.cudaMalloc;
import static io.cistern.javacpp.CisternMalloc.cudaMalloc3D;
import static io.cistern.javacpp.CisternMalloc.cudaMallocAsync;
import static io.cistern.javacpp.CisternMalloc.cudaMallocFromPoolAsync;
import static io.cistern.javacpp.CisternMalloc.cudaMallocManaged;
import static io.cistern.javacpp.CisternMalloc.cudaMallocPitch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.bytedeco.cuda.global.cudart.*;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Streams;
import io.cistern.jvm.FakeLibrary;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.bytedeco.cuda.cudart.CUmemPoolHandle_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.cudart.cudaExtent;
import org.bytedeco.cuda.cudart.cudaPitchedPtr;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A program that imports all of the presets' functions, and ours by their names: ours are called. Its memory is that
/// of the process, on the simulated GPU.
class CisternMallocTests {
    private static final long TOO_MUCH = 1L << 50;

    private final FakeLibrary runtime = FakeCuda.library("libcudart.so.13");
    private final DeviceMemory memory = DeviceMemory.system();
    private final CudaDriver gpu = memory.driver();
    private final List<Long> streams = new ArrayList<>();
    private final Allocator plain = memory.open(OpenOptions.made("plain", new PlainMemory()));
    private final Pointer pointer = new Pointer();
    private long freedBefore;

    private final class PlainMemory implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            streams.add(stream);
            return gpu.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            streams.add(stream);
            gpu.memory().free(device, address);
        }
    }

    @BeforeEach
    void begin() {
        memory.currents().set(plain);
        runtime.set("failing", 0);
        freedBefore = runtime.get("freed");
    }

    @AfterEach
    void nothingIsLeft() {
        assertThat(plain.statistics(0).liveBlocks()).isZero();
        memory.setCurrent("caching");
        plain.close();
    }

    private long freedByPresets() {
        return runtime.get("freed") - freedBefore;
    }

    @Test
    void mallocTakesMemoryOfTheCurrentAllocator() {
        assertThat(cudaMalloc(pointer, 1000)).isEqualTo(cudaSuccess);
        assertThat(plain.statistics(0).requestedBytes()).isEqualTo(1000);
        gpu.copies().fillBytes(0, pointer.address(), (byte) 1, 1000, 0);
        assertThat(cudaFree(pointer)).isEqualTo(cudaSuccess);
        assertThat(cudaFree(pointer)).isEqualTo(cudaErrorInvalidValue);
        assertThat(cudaFree(new Pointer())).isEqualTo(cudaSuccess);
        assertThat(cudaFree(null)).isEqualTo(cudaSuccess);
        assertThat(streams).containsExactly(Streams.LEGACY_DEFAULT, Streams.LEGACY_DEFAULT);
        assertThat(freedByPresets()).isZero();
    }

    @Test
    void typedPointersAndPointersToPointersAreWritten() {
        FloatPointer floats = new FloatPointer();
        assertThat(cudaMalloc(floats, 4000)).isZero();
        FloatPointer third = new FloatPointer(floats).position(3);
        assertThat(cudaFree(third)).as("no block begins there").isEqualTo(cudaErrorInvalidValue);
        assertThat(cudaMalloc(third, 500)).isZero();
        try (PointerPointer<Pointer> two = new PointerPointer<>(2)) {
            assertThat(cudaMalloc(two, 100)).isZero();
            assertThat(cudaMalloc(two.position(1), 200)).isZero();
            assertThat(plain.statistics(0).requestedBytes()).isEqualTo(4800);
            assertThat(cudaFree(two.position(0).get(0))).isZero();
            assertThat(cudaFree(two.get(1))).isZero();
        }
        assertThat(cudaFree(third)).isZero();
        assertThat(cudaFree(floats)).isZero();
    }

    @Test
    void failuresAreCudasResults() {
        assertThat(cudaMalloc(pointer, TOO_MUCH)).isEqualTo(cudaErrorMemoryAllocation);
        assertThat(cudaMalloc(pointer, -1)).isEqualTo(cudaErrorInvalidValue);
        assertThat(cudaFree(DevicePointer.of(4096, 1))).isEqualTo(cudaErrorInvalidValue);
        assertThat(pointer.isNull()).isTrue();
    }

    /// The address of a freed block may be another's by then.
    @Test
    void aFailedAllocationLeavesNoAddress() {
        FloatPointer floats = new FloatPointer();
        assertThat(cudaMalloc(floats, 4000)).isZero();
        FloatPointer stale = new FloatPointer(floats).position(3);
        assertThat(cudaMalloc(stale, TOO_MUCH)).isEqualTo(cudaErrorMemoryAllocation);
        assertThat(stale.isNull()).isTrue();
        assertThat(cudaFree(stale)).isZero();
        runtime.set("failing", 1);
        stale = new FloatPointer(floats);
        assertThat(cudaMallocManaged(stale, 1000)).isEqualTo(cudaErrorMemoryAllocation);
        assertThat(cudaFree(stale)).isZero();
        try (PointerPointer<Pointer> one = new PointerPointer<>(1);
                SizeTPointer pitch = new SizeTPointer(1);
                cudaPitchedPtr pitched = new cudaPitchedPtr()) {
            one.put(0, floats);
            assertThat(cudaMallocPitch(one, pitch, TOO_MUCH, 1)).isEqualTo(cudaErrorMemoryAllocation);
            assertThat(cudaFree(one.get())).isZero();
            pitched.ptr(floats);
            cudaExtent extent = new cudaExtent().width(TOO_MUCH).height(1).depth(1);
            assertThat(cudaMalloc3D(pitched, extent)).isEqualTo(cudaErrorMemoryAllocation);
            assertThat(cudaFree(pitched.ptr())).isZero();
        }
        assertThat(plain.statistics(0).liveBlocks()).isEqualTo(1);
        assertThat(cudaFree(floats)).isZero();
    }

    /// Memory whose address can't be told would be lost.
    @Test
    void nothingIsAllocatedForAPointerThatCannotBeWritten() {
        PointerPointer<Pointer> gone = new PointerPointer<>(1);
        gone.deallocate();
        SizeTPointer noPitch = new SizeTPointer((Pointer) null);
        cudaPitchedPtr noRows = new cudaPitchedPtr((Pointer) null);
        assertThatNullPointerException().isThrownBy(() -> cudaMalloc(gone, 100));
        assertThatNullPointerException().isThrownBy(() -> cudaMallocPitch(pointer, noPitch, 1000, 3));
        assertThatNullPointerException().isThrownBy(() -> cudaMalloc3D(noRows, new cudaExtent()));
        assertThat(streams).isEmpty();
    }

    @Test
    void allocatorsHearOfTheStreams() {
        try (CudaStream own = CudaStream.open(memory, 0);
                CudaStream other = CudaStream.open(memory, 0)) {
            CUstream_st stream = JavaCppStreams.of(own);
            assertThat(cudaMallocAsync(pointer, 1000, stream)).isZero();
            assertThat(cudaFreeAsync(pointer, JavaCppStreams.of(other))).isZero();
            assertThat(cudaMallocAsync(pointer, 1000, null)).isZero();
            assertThat(cudaFree(pointer)).isZero();
            assertThat(streams)
                    .containsExactly(own.handle(), other.handle(), Streams.LEGACY_DEFAULT, Streams.LEGACY_DEFAULT);
        }
    }

    @Test
    void rowsBeginAtMultiplesOfThePitch() {
        try (SizeTPointer pitch = new SizeTPointer(1);
                PointerPointer<Pointer> rows = new PointerPointer<>(1);
                cudaPitchedPtr pitched = new cudaPitchedPtr()) {
            assertThat(cudaMallocPitch(pointer, pitch, 1000, 3)).isZero();
            assertThat(pitch.get()).isEqualTo(1024);
            assertThat(cudaMallocPitch(rows, pitch, 513, 2)).isZero();
            cudaExtent extent = new cudaExtent().width(1000).height(10).depth(4);
            assertThat(cudaMalloc3D(pitched, extent)).isZero();
            assertThat(List.of(pitched.pitch(), pitched.xsize(), pitched.ysize()))
                    .containsExactly(1024L, 1000L, 10L);
            assertThat(plain.statistics(0).requestedBytes()).isEqualTo((3 + 2 + 40) * 1024);
            assertThat(cudaFree(pitched.ptr())).isZero();
            assertThat(cudaFree(rows.get())).isZero();
            assertThat(cudaFree(pointer)).isZero();
        }
    }

    @Test
    void whatCudaAllocatesGoesBackToIt() {
        CUstream_st stream = new CUstream_st(DevicePointer.of(77, 0));
        assertThat(cudaMallocManaged(pointer, 1000)).isZero();
        assertThat(cudaFree(pointer)).isZero();
        assertThat(freedByPresets()).isEqualTo(1);
        assertThat(cudaFree(pointer)).as("freed twice").isEqualTo(cudaErrorInvalidValue);
        assertThat(cudaMallocFromPoolAsync(pointer, 1000, new CUmemPoolHandle_st(), stream))
                .isZero();
        assertThat(cudaFreeAsync(pointer, stream)).isZero();
        assertThat(freedByPresets()).isEqualTo(2);
        assertThat(runtime.get("stream")).isEqualTo(77);
        assertThat(streams).isEmpty();
    }

    @Test
    void whatCudaRefusesToFreeCanBeFreedAgain() {
        runtime.set("failing", 1);
        assertThat(cudaMallocManaged(pointer, 1000, 1)).isEqualTo(cudaErrorMemoryAllocation);
        assertThat(cudaMallocManaged(pointer, 1000, 1)).isZero();
        runtime.set("failing", 1);
        assertThat(cudaFree(pointer)).isEqualTo(cudaErrorIllegalAddress);
        assertThat(cudaFree(pointer)).isZero();
        assertThat(freedByPresets()).isEqualTo(1);
    }

    @Test
    void aVirtualThreadFreesButCannotAllocate() throws InterruptedException {
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        cudaMalloc(pointer, 1000);
        Thread.startVirtualThread(() -> {
                    try {
                        cudaMalloc(new Pointer(), 1000);
                    } catch (IllegalStateException refused) {
                        thrown.set(refused);
                    }
                    cudaFree(pointer);
                })
                .join();
        assertThat(thrown.get()).hasMessageContaining("platform thread");
    }
}
