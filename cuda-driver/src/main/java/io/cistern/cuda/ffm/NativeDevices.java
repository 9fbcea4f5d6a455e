package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.Devices;
import io.cistern.cuda.DriverCall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;
import java.util.function.LongConsumer;

/// Devices of the real driver. Queries of names, sizes and attributes need no context.
final class NativeDevices extends NativeFacet implements Devices {
    /// Longer than any name of a device.
    private static final int NAME_BYTES = 256;

    private static final int UUID_BYTES = 16;

    private final DriverFunction getName = bind(DriverCall.DEVICE_GET_NAME, "LII");
    private final DriverFunction getUuid = bind(DriverCall.DEVICE_GET_UUID, "LI");
    private final DriverFunction totalMem = bind(DriverCall.DEVICE_TOTAL_MEM, "LI");
    private final DriverFunction getAttribute = bind(DriverCall.DEVICE_GET_ATTRIBUTE, "LII");
    private final DriverFunction synchronize = bind(DriverCall.CONTEXT_SYNCHRONIZE, "");
    private final BudgetNotices budgets;

    NativeDevices(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
        budgets = new BudgetNotices(library, contexts);
    }

    @Override
    public int count() {
        return contexts.count();
    }

    @Override
    public String name(int device) {
        int handle = contexts.handle(getName, device);
        try (Arena arena = Arena.ofConfined();
                Frame frame = Frame.acquire()) {
            MemorySegment text = arena.allocate(NAME_BYTES);
            getName.check(getName.call(frame, text.address(), NAME_BYTES, handle), "device", device);
            return text.getString(0);
        }
    }

    @Override
    public String uuid(int device) {
        int handle = contexts.handle(getUuid, device);
        try (Arena arena = Arena.ofConfined();
                Frame frame = Frame.acquire()) {
            MemorySegment uuid = arena.allocate(UUID_BYTES);
            getUuid.check(getUuid.call(frame, uuid.address(), handle), "device", device);
            String hex = HexFormat.of().formatHex(uuid.toArray(ValueLayout.JAVA_BYTE));
            return String.join(
                    "-",
                    hex.substring(0, 8),
                    hex.substring(8, 12),
                    hex.substring(12, 16),
                    hex.substring(16, 20),
                    hex.substring(20));
        }
    }

    @Override
    public long totalBytes(int device) {
        int handle = contexts.handle(totalMem, device);
        try (Frame frame = Frame.acquire()) {
            totalMem.check(totalMem.call(frame, frame.out(), handle), "device", device);
            return frame.outLong();
        }
    }

    @Override
    public int attribute(int device, DeviceAttribute attribute) {
        int handle = contexts.handle(getAttribute, device);
        try (Frame frame = Frame.acquire()) {
            int code = getAttribute.call(frame, frame.out(), attribute.code(), handle);
            if (code == CudaResult.INVALID_VALUE.code()) {
                return 0;
            }
            getAttribute.check(code, "device, attribute", device, attribute.code());
            return frame.outInt();
        }
    }

    @Override
    public boolean isUsed(int device) {
        contexts.handle(getAttribute, device);
        return contexts.isRetained(device);
    }

    @Override
    public long primaryContext(int device) {
        return contexts.primary(device);
    }

    @Override
    public long enterContext(int device) {
        return contexts.exchange(contexts.primary(device));
    }

    @Override
    public void leaveContext(int device, long before) {
        contexts.exchange(before == 0 ? contexts.primary(device) : before);
    }

    @Override
    public int currentDevice() {
        return contexts.currentDevice();
    }

    @Override
    public long onOverBudget(int device, LongConsumer whenOver) {
        return budgets.register(device, whenOver);
    }

    @Override
    public void endOverBudget(int device, long registration) {
        budgets.unregister(device, registration);
    }

    @Override
    public void synchronize(int device) {
        contexts.shelter().refuse(synchronize, device);
        BlockingCalls.run(() -> {
            try (Frame frame = contexts.enter(synchronize, device)) {
                synchronize.check(synchronize.call(frame), "device", device);
            }
        });
    }
}
