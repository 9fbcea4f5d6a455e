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
 * Scopes that a coroutine and its children take with them to whatever thread they run on.
 *
 * ```kotlin
 * withContext(DeviceMemoryScope(pool)) { train() }                  // what train() allocates comes from the pool
 * launch(DeviceMemoryScope.capture(memory)) { work() }              // as the thread that launches
 * ```
 *
 * While the coroutine runs, its thread is in these scopes and no others. When it suspends or ends, the thread is where it
 * was before. Scopes nest in those of the place where the element is made, which may narrow them to a device or a
 * stream. A coroutine has one such element for each device memory.
 *
 * A [io.cistern.Scope] belongs to a thread: close it before the coroutine suspends. Otherwise [io.cistern.Scope.close]
 * refuses, with [WrongThreadException] or, if the coroutine came back to its thread, with [IllegalStateException].
 *
 * The element keeps no pool open: after a pool has closed, allocating in its scope fails with [IllegalStateException].
 *
 * **Threads.** Immutable; any coroutines may use it at any time, also several at once.
 */
public class DeviceMemoryScope private constructor(
    private val memory: DeviceMemory,
    private val scopes: ScopeCarrier,
) : AbstractCoroutineContextElement(Key(memory)), ThreadContextElement<ScopeCarrier> {

    /** Captures a scope that was entered just now, and closes it. */
    private constructor(entered: Scope) : this(
        entered.allocator().memory(),
        entered.use { ScopeCarrier.capture(it.allocator().memory()) },
    )

    /**
     * A scope in which an allocator serves.
     *
     * @throws IndexOutOfBoundsException if the options name a device that there is not
     * @throws IllegalStateException if the allocator is closed
     */
    public constructor(allocator: Allocator, options: ScopeOptions = ScopeOptions.all()) : this(allocator.enter(options))

    /**
     * A scope in which a pool serves.
     *
     * @throws IndexOutOfBoundsException if the options name a device that there is not
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
        /** The scopes that the calling thread is in; outside any, those of the coroutine end where this is used. */
        public fun capture(memory: DeviceMemory = DeviceMemory.system()): DeviceMemoryScope =
            DeviceMemoryScope(memory, ScopeCarrier.capture(memory))
    }
}

/**
 * Calls a block in a scope of this allocator, on whatever threads it runs.
 *
 * @throws IndexOutOfBoundsException if the options name a device that there is not
 * @throws IllegalStateException if the allocator is closed
 */
public suspend fun <T> Allocator.scoped(
    options: ScopeOptions = ScopeOptions.all(),
    block: suspend CoroutineScope.() -> T,
): T = withContext(DeviceMemoryScope(this, options), block)

/**
 * Calls a block in a scope of this pool, on whatever threads it runs.
 *
 * @throws IndexOutOfBoundsException if the options name a device that there is not
 * @throws IllegalStateException if the pool is closed
 */
public suspend fun <T> MemoryPool.scoped(
    options: ScopeOptions = ScopeOptions.all(),
    block: suspend CoroutineScope.() -> T,
): T = withContext(DeviceMemoryScope(this, options), block)
