package io.cistern.internal.routing;

/// A place where freed blocks of a route go that keeps some of them, so that they still have an owner record.
public interface FreedBlockKeeper {
    /// Whether the program has freed a block that is kept here.
    boolean isKept(Route route, long address);
}
