package io.cistern.cuda.ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.DriverCall;
import io.cistern.cuda.library.NativeCode;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/// Registers listeners that the driver calls when the process exceeds its budget. They share one stub, as [host
/// functions][HostFunctions] do; the word that the driver passes along is the listener's key.
///
/// ```
/// CUasyncNotificationInfo   type 0 (int, 1: over budget) · bytesOverBudget 8 (long)
/// CUasyncCallback           void (CUasyncNotificationInfo *, void *userData, CUasyncCallbackHandle)
/// ```
final class BudgetNotices {
    /// `CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET`
    static final int OVER_BUDGET = 1;

    static final long INFO_BYTES = 16;
    static final long OVER = 8;

    private static final ConcurrentMap<Long, LongConsumer> LISTENING = new ConcurrentHashMap<>();
    private static final AtomicLong LAST_KEY = new AtomicLong();

    /// Created on first use.
    private static final class Stub {
        static final long ENTRY_POINT = make();

        private static long make() {
            try {
                MethodType type = MethodType.methodType(void.class, MemorySegment.class, long.class, long.class);
                MethodHandle told = MethodHandles.lookup().findStatic(BudgetNotices.class, "told", type);
                return NativeCode.function(told, FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_LONG))
                        .address();
            } catch (ReflectiveOperationException e) {
                throw new LinkageError("BudgetNotices.told", e);
            }
        }
    }

    private final Contexts contexts;
    private final DriverFunction register;
    private final DriverFunction unregister;

    /// The listeners' keys, by the driver's registration handle.
    private final ConcurrentMap<Long, Long> keys = new ConcurrentHashMap<>();

    BudgetNotices(DriverLibrary library, Contexts contexts) {
        this.contexts = contexts;
        register = library.function(DriverCall.DEVICE_REGISTER_ASYNC_NOTIFICATION, "ILLL");
        unregister = library.function(DriverCall.DEVICE_UNREGISTER_ASYNC_NOTIFICATION, "IL");
    }

    long register(int device, LongConsumer whenOver) {
        int handle = contexts.handle(register, device);
        long key = LAST_KEY.incrementAndGet();
        LISTENING.put(key, whenOver);
        boolean registered = false;
        try (Frame frame = Frame.acquire()) {
            int code = register.call(frame, handle, Stub.ENTRY_POINT, key, frame.zeroedOut());
            register.check(code, "device", device);
            keys.put(frame.outLong(), key);
            registered = true;
            return frame.outLong();
        } finally {
            if (!registered) {
                LISTENING.remove(key);
            }
        }
    }

    void unregister(int device, long registration) {
        int handle = contexts.handle(unregister, device);
        try (Frame frame = Frame.acquire()) {
            int code = unregister.call(frame, handle, registration);
            unregister.check(code, "device, registration", device, registration);
        }
        Long key = keys.remove(registration);
        if (key != null) {
            LISTENING.remove(key);
        }
    }

    /// Called from C, so an exception that left this method would end the JVM.
    @SuppressWarnings({"restricted", "unused"})
    private static void told(MemorySegment info, long key, long registration) {
        try {
            MemorySegment read = info.reinterpret(INFO_BYTES);
            LongConsumer listener = LISTENING.get(key);
            if (listener != null && read.get(JAVA_INT, 0) == OVER_BUDGET) {
                listener.accept(read.get(JAVA_LONG, OVER));
            }
        } catch (Throwable thrown) {
            HostFunctions.log(thrown);
        }
    }
}
