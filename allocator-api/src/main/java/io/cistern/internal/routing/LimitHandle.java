package io.cistern.internal.routing;

import org.jspecify.annotations.Nullable;

/// A limit as programs hold it. Routes refer to its budget and not to this object, so that garbage collection
/// shows when no program holds the limit any more.
///
/// @param budget the budget that blocks are charged to
/// @param parent the limit above. While a program holds this limit, the routes of the parent serve no other
///     limit
public record LimitHandle(Budget budget, @Nullable LimitHandle parent) {
    /// Sets a limit under another one, or under none.
    ///
    /// @throws IllegalArgumentException if it is negative
    public static LimitHandle of(String name, long byteSize, @Nullable LimitHandle parent) {
        return new LimitHandle(new Budget(name, byteSize, parent == null ? null : parent.budget), parent);
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }
}
