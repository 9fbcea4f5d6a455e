package io.cistern.examples;

import static io.cistern.jcuda.CisternMalloc.cuCtxCreate;
import static io.cistern.jcuda.CisternMalloc.cuCtxDestroy;
import static io.cistern.jcuda.CisternMalloc.cuMemAlloc;
import static io.cistern.jcuda.CisternMalloc.cuMemFree;
import static jcuda.driver.JCudaDriver.cuDeviceGet;
import static jcuda.driver.JCudaDriver.cuInit;
import static jcuda.driver.JCudaDriver.cuLaunchKernel;
import static jcuda.driver.JCudaDriver.cuMemcpyDtoH;
import static jcuda.driver.JCudaDriver.cuMemcpyHtoD;
import static jcuda.driver.JCudaDriver.cuModuleGetFunction;
import static jcuda.driver.JCudaDriver.cuModuleLoadData;

import java.io.IOException;
import java.util.Arrays;
import jcuda.Pointer;
import jcuda.Sizeof;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.JCudaDriver;

/// A program for JCuda that uses Cistern only through four of its imports. Needs a GPU, and JCuda's native
/// parts on the class path (`org.jcuda:jcuda-natives:12.6.0:linux-x86_64`).
///
/// **Dependencies:** `io.cistern:cistern`, `io.cistern:cistern-jcuda`, and those of JCuda that docs/jcuda.md names.
public final class VectorAddByImports {
    private static final int COUNT = 1 << 20;

    private VectorAddByImports() {}

    /// Prints the last sum.
    public static void main(String[] arguments) throws IOException {
        try {
            JCudaDriver.setExceptionsEnabled(true);
        } catch (LinkageError absent) {
            System.err.println("JCuda needs its native libraries and a driver");
            System.exit(1);
        }
        cuInit(0);
        CUdevice device = new CUdevice();
        cuDeviceGet(device, 0);
        CUcontext context = new CUcontext();
        cuCtxCreate(context, 0, device);
        System.out.println("1 + 1 = " + add() + ", " + COUNT + " times");
        cuCtxDestroy(context);
    }

    private static float add() throws IOException {
        long bytes = (long) COUNT * Sizeof.FLOAT;
        float[] numbers = new float[COUNT];
        Arrays.fill(numbers, 1);
        CUdeviceptr ones = new CUdeviceptr();
        cuMemAlloc(ones, bytes);
        cuMemcpyHtoD(ones, Pointer.to(numbers), bytes);
        CUdeviceptr sums = new CUdeviceptr();
        cuMemAlloc(sums, bytes);
        Pointer values =
                Pointer.to(Pointer.to(ones), Pointer.to(ones), Pointer.to(sums), Pointer.to(new int[] {COUNT}));
        cuLaunchKernel(kernel(), COUNT / 256, 1, 1, 256, 1, 1, 0, null, values, null);
        cuMemcpyDtoH(Pointer.to(numbers), sums, bytes);
        cuMemFree(ones);
        cuMemFree(sums);
        return numbers[COUNT - 1];
    }

    private static CUfunction kernel() throws IOException {
        CUmodule module = new CUmodule();
        cuModuleLoadData(module, Resources.text("vector_add.ptx"));
        CUfunction add = new CUfunction();
        cuModuleGetFunction(add, module, "vector_add");
        return add;
    }
}
