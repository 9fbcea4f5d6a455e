package io.cistern.caching.internal.check;

import io.cistern.internal.names.FrameworkFrames;
import java.lang.StackWalker.StackFrame;
import java.util.List;
import java.util.Set;

/// The code that called into the framework.
final class CallSite {
    private static final int MAX_FRAMES = 12;

    private static final StackWalker WALKER = StackWalker.getInstance();

    /// Layers of this allocator, beside those of the framework.
    private static final Set<String> OWN = Set.of(
            CallSite.class.getName(),
            CheckedAllocator.class.getName(),
            CheckedBlocks.class.getName(),
            ParanoidAllocator.class.getName());

    private CallSite() {}

    static List<StackFrame> here() {
        return WALKER.walk(
                stack -> stack.dropWhile(CallSite::isOwn).limit(MAX_FRAMES).toList());
    }

    private static boolean isOwn(StackFrame frame) {
        String name = frame.getClassName();
        return FrameworkFrames.contains(name) || OWN.contains(name);
    }
}
