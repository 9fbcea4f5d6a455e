package io.cistern.guice;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/// Runs a method in a scope of a pool, so its allocations on the calling thread come from the pool, on any
/// device and stream. Guice must create the object, and the method must be one that can be overridden.
///
/// ```java
/// @InPool("gradients")
/// CompletableFuture<Loss> step(Batch batch) { … }
/// ```
///
/// The scope ends when the method returns, because scopes belong to threads. If the method returns a
/// [java.util.concurrent.CompletionStage], the pool stays in use until the stage completes. If it is closed
/// before, it gives its memory back only then. To carry the scope to other threads, use [io.cistern.ScopeCarrier].
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface InPool {
    /// Returns the name of a pool that the module was given.
    String value();
}
