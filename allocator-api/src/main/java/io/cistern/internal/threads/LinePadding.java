package io.cistern.internal.threads;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/// An empty cache line in front of the fields of a class that only one thread writes.
///
/// Objects of different threads may become neighbours on the heap, at the latest when the collector moves
/// them. With the padding, a preceding object on the heap never shares a line with these fields. The int
/// fills the gap after the header, where the JVM would put a field of the class.
@SuppressWarnings("unused")
public abstract class LinePadding {
    private int p0;
    private long p1, p2, p3, p4, p5, p6, p7, p8;

    /// Finds the handle of a field of the caller's class.
    protected static VarHandle handle(MethodHandles.Lookup caller, String field, Class<?> type) {
        try {
            return caller.findVarHandle(caller.lookupClass(), field, type);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
