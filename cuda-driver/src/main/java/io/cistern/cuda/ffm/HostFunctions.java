package io.cistern.cuda.ffm;

import io.cistern.cuda.library.NativeCode;
import java.lang.System.Logger.Level;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Runs Java code that the driver calls when a stream reaches it or a graph is gone.
///
/// The driver calls a C function with one word that the caller chose. All code shares one stub as that
/// function. The stub lives as long as the program, since the code that it runs can't free it. The word is
/// the key under which the code is kept until it has run. The driver makes the call on its own thread.
final class HostFunctions {
    private static final System.Logger LOG = System.getLogger(HostFunctions.class.getName());
    private static final ConcurrentMap<Long, Runnable> WAITING = new ConcurrentHashMap<>();
    private static final AtomicLong LAST_KEY = new AtomicLong();

    /// The C function to give to the driver.
    static final long ENTRY_POINT = stub("run");

    /// The C function for code that runs repeatedly, until it is [forgotten][#forget].
    static final long REPEATING_ENTRY_POINT = stub("runAgain");

    private HostFunctions() {}

    private static long stub(String name) {
        try {
            MethodType type = MethodType.methodType(void.class, long.class);
            MethodHandle target = MethodHandles.lookup().findStatic(HostFunctions.class, name, type);
            return NativeCode.function(target, FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG))
                    .address();
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("HostFunctions." + name, e);
        }
    }

    /// Keeps code until it has run or is forgotten, and returns its key.
    static long keep(Runnable function) {
        long key = LAST_KEY.incrementAndGet();
        WAITING.put(key, function);
        return key;
    }

    static void forget(long key) {
        WAITING.remove(key);
    }

    static int waiting() {
        return WAITING.size();
    }

    /// Called from C.
    static void run(long key) {
        run(WAITING.remove(key));
    }

    /// Called from C.
    static void runAgain(long key) {
        run(WAITING.get(key));
    }

    /// An exception that left this method would end the JVM.
    private static void run(@Nullable Runnable function) {
        try {
            if (function != null) {
                function.run();
            }
        } catch (Throwable e) {
            log(e);
        }
    }

    static void log(Throwable thrown) {
        try {
            LOG.log(Level.ERROR, "a host function threw", thrown);
        } catch (Throwable _) {
            // The logger failed, too: there is no way to report it.
        }
    }
}
