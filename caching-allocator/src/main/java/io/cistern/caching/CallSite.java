package io.cistern.caching;

import java.lang.StackWalker.StackFrame;
import java.util.List;
import java.util.Set;

/// The code that called into the framework.
final class CallSite {
    private static final int MOST_FRAMES = 12;

    private static final StackWalker WALKER = StackWalker.getInstance();

    /// The framework's calls on the way to an allocator, which say nothing to its user.
    private static final Set<String> OWN = Set.of(
            "io.cistern.Allocator",
            "io.cistern.Allocators",
            "io.cistern.DeviceBuffer",
            "io.cistern.DeviceMemory",
            "io.cistern.MemoryPool",
            CallSite.class.getName(),
            CheckedAllocator.class.getName(),
            CheckedBlocks.class.getName(),
            ParanoidAllocator.class.getName());

    private static final String OWN_PACKAGES = "io.cistern.internal.";

    private CallSite() {}

    static List<StackFrame> here() {
        return WALKER.walk(
                stack -> stack.dropWhile(CallSite::isOwn).limit(MOST_FRAMES).toList());
    }

    private static boolean isOwn(StackFrame frame) {
        String name = frame.getClassName();
        return name.startsWith(OWN_PACKAGES) || OWN.contains(name);
    }
}
