package io.cistern.buffers;

import io.cistern.buffers.internal.LastStreams;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;

/// Copies between buffers, on one GPU or from one to another. Nothing here waits on the host, unless the
/// driver refuses to order streams after a copy.
final class DeviceCopies {
    private DeviceCopies() {}

    /// Copies in order with the streams of both buffers.
    ///
    /// On one GPU, the target's stream first waits for the work enqueued so far on the source's stream. Between
    /// GPUs the copy runs on the source's stream: that stream first waits for the target's, and the target's waits
    /// for it afterwards. A stream that has ended is replaced by one that comes after all work of its GPU.
    static void inOrder(DeviceBuffer target, DeviceBuffer source) {
        boolean isOneDevice = source.device() == target.device();
        if (isOneDevice && source.stream() == target.stream()) {
            on(target, source, lastStream(target));
            return;
        }
        DeviceBuffer before = isOneDevice ? source : target;
        DeviceBuffer copying = isOneDevice ? target : source;
        CaptureRules.requireOrder(
                target.memory(), before.device(), before.stream(), copying.device(), copying.stream());
        CudaDriver driver = target.memory().driver();
        long awaited = lastStream(before);
        long stream = lastStream(copying);
        order(driver, before.device(), awaited, copying.device(), stream);
        if (isOneDevice) {
            on(target, source, stream);
            return;
        }
        between(target, source, stream);
        try {
            order(driver, copying.device(), stream, before.device(), awaited);
        } catch (CudaException refused) {
            driver.streams().synchronize(copying.device(), stream);
        }
    }

    private static long lastStream(DeviceBuffer buffer) {
        return LastStreams.of(buffer.memory()).streamFor(buffer.device(), buffer.stream());
    }

    /// Makes later work of one stream wait for all work enqueued so far on another.
    static void order(CudaDriver driver, int device, long stream, int laterDevice, long later) {
        try (Mark mark = Mark.open(driver, device)) {
            driver.events().record(device, mark.event, stream);
            driver.streams().await(laterDevice, later, mark.event);
        }
    }

    /// An event that is always destroyed: the Java objects needed for that are created before the event.
    private static final class Mark implements AutoCloseable, Runnable {
        private final CudaDriver driver;
        private final int device;
        private long event;

        private Mark(CudaDriver driver, int device) {
            this.driver = driver;
            this.device = device;
        }

        static Mark open(CudaDriver driver, int device) {
            Mark mark = new Mark(driver, device);
            mark.event = driver.events().create(device);
            return mark;
        }

        @Override
        public void run() {
            driver.events().destroy(device, event);
        }

        @Override
        public void close() {
            DeadContext.insist(this);
        }
    }

    /// Copies in the order of one stream of the source's device.
    static void on(DeviceBuffer target, DeviceBuffer source, long stream) {
        if (source.device() != target.device()) {
            try (Mark mark = Mark.open(target.memory().driver(), source.device())) {
                between(target, source, stream);
                keep(target, mark, stream);
            }
            return;
        }
        CopySizes.requireFits("source", source.byteSize(), "buffer", target.byteSize());
        long from = source.addressOn(stream);
        long to = target.addressOn(stream);
        requireApart(to, source.byteSize(), from, source.byteSize());
        target.memory().driver().copies().onDevice(target.device(), to, from, source.byteSize(), stream);
    }

    /// Copies in the order of a stream of the source's device. The target's allocator does not know that stream.
    private static void between(DeviceBuffer target, DeviceBuffer source, long stream) {
        CopySizes.requireFits("source", source.byteSize(), "buffer", target.byteSize());
        long from = source.addressOn(stream);
        target.memory()
                .driver()
                .copies()
                .betweenDevices(target.device(), target.address(), source.device(), from, source.byteSize(), stream);
    }

    /// Keeps a buffer's memory from reuse until a stream of another device has passed all work enqueued so far.
    /// If the driver refuses, the host waits for that stream.
    private static void keep(DeviceBuffer buffer, Mark mark, long stream) {
        try {
            mark.driver.events().record(mark.device, mark.event, stream);
            buffer.recordUseUntil(buffer.block(), mark.event);
        } catch (CudaException refused) {
            mark.driver.streams().synchronize(mark.device, stream);
        }
    }

    static void rows(DeviceRows target, DeviceRows source, long stream) {
        long to = target.addressOn(stream);
        long from = source.addressOn(stream);
        if (target.pitch() != source.pitch() || !interleave(from - to, target.pitch(), target.rowBytes())) {
            requireApart(to, target.span(), from, source.span());
        }
        target.copyShape(to, target.pitch(), from, source.pitch(), stream);
    }

    /// Returns whether rows of one pitch lie between those of the other side, like other columns of a matrix.
    private static boolean interleave(long distance, long pitch, long rowBytes) {
        long shift = pitch == 0 ? 0 : Math.floorMod(distance, pitch);
        return rowBytes <= shift && shift <= pitch - rowBytes;
    }

    /// Checks that both buffers are open and don't overlap.
    static void requireApart(DeviceBuffer target, DeviceBuffer source) {
        requireApart(target.address(), source.byteSize(), source.address(), source.byteSize());
    }

    private static void requireApart(long to, long toBytes, long from, long fromBytes) {
        if (to < from + fromBytes && from < to + toBytes) {
            throw new IllegalArgumentException("source 0x" + Long.toHexString(from) + " and target 0x"
                    + Long.toHexString(to) + " overlap in a copy of " + fromBytes
                    + " bytes: copy through a third buffer");
        }
    }
}
