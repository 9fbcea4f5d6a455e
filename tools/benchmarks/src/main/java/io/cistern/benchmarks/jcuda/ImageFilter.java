package io.cistern.benchmarks.jcuda;

import static jcuda.driver.JCudaDriver.cuMemcpyDtoH;
import static jcuda.driver.JCudaDriver.cuMemcpyHtoD;

import jcuda.Pointer;
import jcuda.Sizeof;
import jcuda.driver.CUdeviceptr;

/// A grey image goes to the device, is blurred by rows and by columns, some times over, each pass into memory of its
/// own, and comes back.
final class ImageFilter implements JCudaProgram {
    private static final int TIMES = 8;

    private final Kernels kernels;
    private final int width;
    private final int height;
    private final float[] image;
    private final float[] blurred;

    ImageFilter(Kernels kernels, int width, int height) {
        this.kernels = kernels;
        this.width = width;
        this.height = height;
        image = new float[width * height];
        blurred = new float[width * height];
        for (int i = 0; i < image.length; i++) {
            image[i] = i * 31 % 256;
        }
    }

    @Override
    public String name() {
        return "image filter, " + width + " x " + height;
    }

    @Override
    public void run(DeviceMalloc memory) {
        long byteSize = (long) image.length * Sizeof.FLOAT;
        CUdeviceptr present = memory.malloc(byteSize);
        cuMemcpyHtoD(present, Pointer.to(image), byteSize);
        for (int pass = 0; pass < 2 * TIMES; pass++) {
            CUdeviceptr next = memory.malloc(byteSize);
            kernels.blur(present, next, width, height, pass % 2 == 0 ? 1 : 0, pass % 2);
            memory.release(present);
            present = next;
        }
        cuMemcpyDtoH(Pointer.to(blurred), present, byteSize);
        memory.release(present);
    }

    /// The same on the host for the upper left corner, which depends on what lies at most so many pixels away.
    @Override
    public boolean isRight() {
        int corner = 8;
        int part = corner + TIMES;
        float[] present = new float[part * part];
        for (int y = 0; y < part; y++) {
            System.arraycopy(image, y * width, present, y * part, part);
        }
        for (int pass = 0; pass < 2 * TIMES; pass++) {
            present = blur(present, part, pass % 2 == 0 ? 1 : 0, pass % 2);
        }
        for (int y = 0; y < corner; y++) {
            for (int x = 0; x < corner; x++) {
                if (Math.abs(present[y * part + x] - blurred[y * width + x]) > 1e-2f) {
                    return false;
                }
            }
        }
        return true;
    }

    private static float[] blur(float[] source, int part, int dx, int dy) {
        float[] target = new float[source.length];
        for (int y = 0; y < part; y++) {
            for (int x = 0; x < part; x++) {
                int before = Math.max(0, y - dy) * part + Math.max(0, x - dx);
                int behind = Math.min(part - 1, y + dy) * part + Math.min(part - 1, x + dx);
                target[y * part + x] = (source[before] + source[behind] + source[y * part + x]) / 3;
            }
        }
        return target;
    }
}
