package io.cistern.kotlin

import io.cistern.Allocator
import io.cistern.DeviceMemory
import io.cistern.MemoryPool
import io.cistern.Scope
import io.cistern.ScopeCarrier
import io.cistern.ScopeOptions
import kotlin.coroutines.AbstractCoroutineContextElement
import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.ThreadContextElement
import kotlinx.coroutines.withContext

/**
 * Carries scopes with a coroutine and its children, on whatever threads they run.
 *
 * ```kotlin
 * withContext(DeviceMemoryScope(pool)) { train() }                  // train() allocates from the pool
 * launch(DeviceMemoryScope.capture(memory)) { work() }              // in the launching thread's scopes
 * ```
 *
 * While the coroutine runs, its thread is in these scopes and no others. When the coroutine suspends or ends,
 * the thread returns to its own scopes. The scopes nest in those that are active where the element is created;
 * options can narrow them to a device or a stream. A coroutine has at most one such element for each device memory.
 *
 * A [io.cistern.Scope] belongs to a thread, so close it before the coroutine suspends. Otherwise
 * [io.cistern.Scope.close] throws [WrongThreadException], or [IllegalStateException] if the coroutine came
 * back to its thread.
 *
 * The element does not keep a pool open: after the pool closes, allocating in its scope
 * fails with [IllegalStateException].
 *
 * **Threads.** Immutable; any number of coroutines may use it at the same time.
 */
public class DeviceMemoryScope private constructor(
    private val memory: DeviceMemory,
    private val scopes: ScopeCarrier,
) : AbstractCoroutineContextElement(Key(memory)), ThreadContextElement<ScopeCarrier> {

    /** Captures a scope that was entered just before, and closes it. */
    private constructor(entered: Scope) : this(
        entered.allocator().memory(),
        entered.use { ScopeCarrier.capture(it.allocator().memory()) },
    )

    /**
     * Creates a scope that allocates from an allocator.
     *
     * @throws IndexOutOfBoundsException if the options name a device that does not exist
     * @throws IllegalStateException if the allocator is closed
     */
    public constructor(allocator: Allocator, options: ScopeOptions = ScopeOptions.all()) : this(allocator.enter(options))

    /**
     * Creates a scope that allocates from a pool.
     *
     * @throws IndexOutOfBoundsException if the options name a device that does not exist
     * @throws IllegalStateException if the pool is closed
     */
    public constructor(pool: MemoryPool, options: ScopeOptions = ScopeOptions.all()) : this(pool.enter(options))

    override fun updateThreadContext(context: CoroutineContext): ScopeCarrier {
        val before = ScopeCarrier.capture(memory)
        scopes.restore()
        return before
    }

    override fun restoreThreadContext(context: CoroutineContext, oldState: ScopeCarrier) {
        oldState.restore()
    }

    private data class Key(val memory: DeviceMemory) : CoroutineContext.Key<DeviceMemoryScope>

    public companion object {
        /** Captures the calling thread's scopes. If it is in none, a coroutine with this element runs in none. */
        public fun capture(memory: DeviceMemory = DeviceMemory.system()): DeviceMemoryScope =
            DeviceMemoryScope(memory, ScopeCarrier.capture(memory))
    }
}

/**
 * Calls a block in a scope of this allocator, on whatever threads the block runs.
 *
 * @throws IndexOutOfBoundsException if the options name a device that does not exist
 * @throws IllegalStateException if the allocator is closed
 */
public suspend fun <T> Allocator.scoped(
    options: ScopeOptions = ScopeOptions.all(),
    block: suspend CoroutineScope.() -> T,
): T = withContext(DeviceMemoryScope(this, options), block)

/**
 * Calls a block in a scope of this pool, on whatever threads the block runs.
 *
 * @throws IndexOutOfBoundsException if the options name a device that does not exist
 * @throws IllegalStateException if the pool is closed
 */
public suspend fun <T> MemoryPool.scoped(
    options: ScopeOptions = ScopeOptions.all(),
    block: suspend CoroutineScope.() -> T,
): T = withContext(DeviceMemoryScope(this, options), block)
