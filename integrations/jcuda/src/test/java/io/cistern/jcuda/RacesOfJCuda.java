package io.cistern.jcuda;

import static io.cistern.jcuda.CisternCalls.cuCtxSynchronize;
import static io.cistern.jcuda.CisternCalls.cuEventRecord;
import static io.cistern.jcuda.CisternCalls.cuLaunchKernel;
import static io.cistern.jcuda.CisternCalls.cuMemcpyDtoHAsync;
import static io.cistern.jcuda.CisternCalls.cuMemsetD32Async;
import static io.cistern.jcuda.CisternCalls.cuStreamSynchronize;
import static io.cistern.jcuda.CisternCalls.cuStreamWaitEvent;

import io.cistern.DeviceMemory;
import io.cistern.hazards.StreamHazards;
import java.util.Map;
import java.util.TreeMap;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/// Programs of two streams through JCuda, on a GPU, under the check for races. Prints for each whether a race was
/// found, and whether what came to the host is right.
public final class RacesOfJCuda {
    private static final int COUNT = 1 << 20;

    /// `copy(target, source)`, one number a thread.
    private static final String KERNEL = """
            .version 7.0
            .target sm_52
            .address_size 64
            .visible .entry copy(.param .u64 target, .param .u64 source)
            {
              .reg .b32 %r<6>;
              .reg .b64 %rd<8>;
              ld.param.u64 %rd1, [target];
              ld.param.u64 %rd2, [source];
              cvta.to.global.u64 %rd3, %rd1;
              cvta.to.global.u64 %rd4, %rd2;
              mov.u32 %r1, %ctaid.x;
              mov.u32 %r2, %ntid.x;
              mov.u32 %r3, %tid.x;
              mad.lo.s32 %r4, %r1, %r2, %r3;
              mul.wide.s32 %rd5, %r4, 4;
              add.s64 %rd6, %rd4, %rd5;
              add.s64 %rd7, %rd3, %rd5;
              ld.global.u32 %r5, [%rd6];
              st.global.u32 [%rd7], %r5;
              ret;
            }
            """;

    private final StreamHazards hazards =
            StreamHazards.of(DeviceMemory.system()).orElseThrow();
    private final CUstream one = stream();
    private final CUstream other = stream();
    private final CUevent event = new CUevent();
    private final CUfunction copy = new CUfunction();
    private final CUdeviceptr source = block();
    private final CUdeviceptr target = block();
    private final CUdeviceptr second = block();
    private final int[] host = new int[COUNT];

    private RacesOfJCuda() {
        JCudaDriver.cuEventCreate(event, 2);
        CUmodule module = new CUmodule();
        JCudaDriver.cuModuleLoadData(module, KERNEL);
        JCudaDriver.cuModuleGetFunction(copy, module, "copy");
    }

    private static CUstream stream() {
        CUstream stream = new CUstream();
        JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING);
        return stream;
    }

    private static CUdeviceptr block() {
        CUdeviceptr block = new CUdeviceptr();
        CisternMalloc.cuMemAlloc(block, 4L * COUNT);
        return block;
    }

    /// Runs all.
    public static void main(String[] args) {
        JCudaDriver.setExceptionsEnabled(true);
        JCudaDriver.cuInit(0);
        CUdevice device = new CUdevice();
        JCudaDriver.cuDeviceGet(device, 0);
        CUcontext context = new CUcontext();
        JCudaDriver.cuDevicePrimaryCtxRetain(context, device);
        JCudaDriver.cuCtxSetCurrent(context);
        RacesOfJCuda races = new RacesOfJCuda();
        Map<String, Runnable> programs = new TreeMap<>(Map.of(
                "copy-behind-event", () -> races.copyBehindFill(true),
                "copy-without-event", () -> races.copyBehindFill(false),
                "kernel-behind-event", () -> races.copyBehindKernel(true),
                "kernel-without-event", () -> races.copyBehindKernel(false),
                "two-readers", races::twoReaders,
                "two-writers", races::twoWriters,
                "host-between", races::hostBetween));
        programs.forEach(races::run);
    }

    private void run(String name, Runnable program) {
        cuCtxSynchronize();
        hazards.clear();
        program.run();
        cuCtxSynchronize();
        System.out.println(name + " races " + hazards.list().size() + " first " + host[0] + " last " + host[COUNT - 1]);
    }

    private void fill(CUstream stream, int value) {
        cuMemsetD32Async(source, value, COUNT, stream);
    }

    private void copy(CUstream stream, Pointer from, CUdeviceptr to) {
        Pointer parameters = Pointer.to(Pointer.to(to), Pointer.to(from));
        cuLaunchKernel(copy, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, parameters, null);
    }

    private void toHost(CUstream stream, CUdeviceptr from) {
        cuMemcpyDtoHAsync(Pointer.to(host), from, 4L * COUNT, stream);
        cuStreamSynchronize(stream);
    }

    private void order(CUstream first, CUstream second) {
        cuEventRecord(event, first);
        cuStreamWaitEvent(second, event, 0);
    }

    private void copyBehindFill(boolean isOrdered) {
        fill(one, 1);
        if (isOrdered) {
            order(one, other);
        }
        toHost(other, source);
    }

    private void copyBehindKernel(boolean isOrdered) {
        fill(one, 2);
        copy(one, CisternCalls.readOnly(source), target);
        if (isOrdered) {
            order(one, other);
        }
        toHost(other, target);
    }

    private void twoReaders() {
        fill(one, 3);
        order(one, other);
        copy(one, CisternCalls.readOnly(source), target);
        copy(other, CisternCalls.readOnly(source), second);
        toHost(other, second);
    }

    private void twoWriters() {
        fill(one, 4);
        order(one, other);
        copy(one, CisternCalls.readOnly(source), target);
        copy(other, CisternCalls.readOnly(source), target);
        cuCtxSynchronize();
        toHost(other, target);
    }

    private void hostBetween() {
        fill(one, 5);
        cuStreamSynchronize(one);
        toHost(other, source);
    }
}
