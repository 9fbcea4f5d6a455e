package io.cistern.guice;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/// Runs a method in a scope of a pool: what it allocates on the calling thread, on any device and stream, comes from
/// there. The object must come from Guice, and the method must be one that can be overridden.
///
/// ```java
/// @InPool("gradients")
/// CompletableFuture<Loss> step(Batch batch) { … }
/// ```
///
/// The scope ends when the method returns, since scopes belong to threads; if it returns a
/// [java.util.concurrent.CompletionStage], the pool stays in use until that has completed, so that closing it waits
/// with giving memory back. What the method has other threads do is carried to them with
/// [io.cistern.ScopeCarrier], as anywhere.
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface InPool {
    /// The name of a pool that the module was given.
    String value();
}
