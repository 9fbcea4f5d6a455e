package io.cistern.guice;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/// Runs a method in a scope of a pool, so its allocations on the calling thread come from the pool, on any
/// device and stream. Guice must create the object, and subclasses must be able to override the method.
///
/// ```java
/// @InPool("gradients")
/// CompletableFuture<Loss> step(Batch batch) { … }
/// ```
///
/// The scope ends when the method returns, because scopes belong to threads. If the method returns a
/// [java.util.concurrent.CompletionStage], the pool stays in use until the stage completes. If the pool is
/// closed before that, it releases its memory only when the stage completes. To carry the scope to other
/// threads, use [io.cistern.ScopeCarrier].
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface InPool {
    /// Returns the name of a pool that was added to the module.
    String value();
}
