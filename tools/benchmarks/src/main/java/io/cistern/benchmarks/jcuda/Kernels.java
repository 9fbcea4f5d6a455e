package io.cistern.benchmarks.jcuda;

import static jcuda.driver.JCudaDriver.cuLaunchKernel;
import static jcuda.driver.JCudaDriver.cuModuleGetFunction;
import static jcuda.driver.JCudaDriver.cuModuleLoadData;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;

/// The programs' kernels, loaded through JCuda.
final class Kernels {
    private final CUfunction vectorAdd = new CUfunction();
    private final CUfunction blur = new CUfunction();

    Kernels() {
        CUmodule module = new CUmodule();
        cuModuleLoadData(module, ptx());
        cuModuleGetFunction(vectorAdd, module, "vector_add");
        cuModuleGetFunction(blur, module, "blur");
    }

    private static String ptx() {
        try (InputStream text = Kernels.class.getResourceAsStream("programs.ptx")) {
            if (text == null) {
                throw new IllegalStateException("programs.ptx is missing");
            }
            return new String(text.readAllBytes(), StandardCharsets.US_ASCII);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void vectorAdd(Pointer x, Pointer y, Pointer sum, int count) {
        Pointer arguments = Pointer.to(Pointer.to(x), Pointer.to(y), Pointer.to(sum), Pointer.to(new int[] {count}));
        cuLaunchKernel(vectorAdd, (count + 255) / 256, 1, 1, 256, 1, 1, 0, null, arguments, null);
    }

    void blur(Pointer source, Pointer target, int width, int height, int dx, int dy) {
        Pointer arguments = Pointer.to(
                Pointer.to(source),
                Pointer.to(target),
                Pointer.to(new int[] {width}),
                Pointer.to(new int[] {height}),
                Pointer.to(new int[] {dx}),
                Pointer.to(new int[] {dy}));
        cuLaunchKernel(blur, (width + 31) / 32, (height + 7) / 8, 1, 32, 8, 1, 0, null, arguments, null);
    }
}
