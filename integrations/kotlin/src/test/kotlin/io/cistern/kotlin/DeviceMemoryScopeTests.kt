package io.cistern.kotlin

import io.cistern.Allocator
import io.cistern.DeviceMemory
import io.cistern.MemoryPool
import io.cistern.ScopeOptions
import io.cistern.simulated.SimulatedGpu
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executor
import java.util.concurrent.Executors
import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExecutorCoroutineDispatcher
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.coroutines.yield
import org.assertj.core.api.Assertions.assertThat
import org.assertj.core.api.Assertions.assertThatExceptionOfType
import org.assertj.core.api.Assertions.assertThatIllegalStateException
import org.assertj.core.api.Assertions.catchThrowable
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Test

class DeviceMemoryScopeTests {
    private val gpu = SimulatedGpu.builder().devices(2).build()
    private val memory = open()
    private val current = memory.setCurrent("direct")
    private val outer = memory.open("direct")
    private val inner = memory.open("direct")

    /** Resumes on another thread each time. */
    private object Elsewhere : CoroutineDispatcher() {
        override fun dispatch(context: CoroutineContext, block: Runnable) {
            Thread.ofPlatform().start(block)
        }
    }

    private fun open(): DeviceMemory =
        DeviceMemory.builder(gpu).catalog(DeviceMemory.system().currents().catalog()).open()

    @AfterEach
    fun close() {
        assertThat(serving()).isSameAs(current)
        assertThat(memory.liveBlocks()).isEmpty()
        memory.close()
        assertThat(gpu.misuses()).isEmpty()
        gpu.close()
    }

    /** Which allocator serves the calling thread now. */
    private fun serving(device: Int = 0): Allocator {
        val address = memory.allocate(100, device, 0)
        return memory.ownerOf(address).also { memory.free(address, 0) }
    }

    private fun onOneThread(body: suspend (ExecutorCoroutineDispatcher) -> Unit) {
        Executors.newSingleThreadExecutor().asCoroutineDispatcher().use { runBlocking { body(it) } }
    }

    @Test
    fun theScopeIsWhereverTheCoroutineResumes() {
        val threads = HashSet<Thread>()
        val served = runBlocking(Elsewhere) {
            outer.scoped {
                List(10) {
                    yield()
                    threads += Thread.currentThread()
                    serving()
                }
            }
        }
        assertThat(threads).hasSizeGreaterThan(9)
        assertThat(served).hasSize(10).containsOnly(outer)
    }

    @Test
    fun dispatchersCarryTheScopeToTheirThreads() {
        val virtual = Executors.newVirtualThreadPerTaskExecutor().asCoroutineDispatcher()
        virtual.use {
            for (dispatcher in listOf(Dispatchers.Default, Dispatchers.IO, Dispatchers.Unconfined, virtual)) {
                val served = runBlocking { inner.scoped { withContext(dispatcher) { yield(); serving() } } }
                assertThat(served).`as`("%s", dispatcher).isSameAs(inner)
                assertThat(runBlocking(dispatcher) { serving() }).`as`("%s", dispatcher).isSameAs(current)
            }
        }
    }

    @Test
    fun flowsAreInTheScopeOfTheirCollector() {
        val numbers = flow { repeat(3) { emit(serving()) } }.flowOn(Elsewhere)
        assertThat(runBlocking { outer.scoped { numbers.toList() } }).containsExactly(outer, outer, outer)
    }

    @Test
    fun aSuspendedCoroutineLeavesItsThreadAsItWas() = onOneThread { thread ->
        val suspended = CompletableDeferred<Unit>()
        val resume = CompletableDeferred<Unit>()
        val own = withContext(thread) { inner.enter() }
        val job = launchIn(thread) {
            outer.scoped {
                assertThat(serving()).isSameAs(outer)
                suspended.complete(Unit)
                resume.await()
                assertThat(serving()).isSameAs(outer)
            }
            assertThat(serving()).isSameAs(inner)
        }
        suspended.await()
        assertThat(thread.executor.serves()).isSameAs(inner)
        resume.complete(Unit)
        job.await()
        withContext(thread) { own.close() }
        assertThat(thread.executor.serves()).isSameAs(current)
    }

    private fun launchIn(context: CoroutineContext, body: suspend () -> Unit) =
        CoroutineScope(context).async { body() }

    /** Who serves a task that is no coroutine. */
    private fun Executor.serves(): Allocator =
        CompletableFuture.supplyAsync({ serving() }, this).join()

    @Test
    fun scopesNestAndFallThrough() {
        runBlocking(Elsewhere) {
            outer.scoped {
                inner.scoped(ScopeOptions.all().device(1)) {
                    yield()
                    assertThat(serving(0)).isSameAs(outer)
                    assertThat(serving(1)).isSameAs(inner)
                    current.scoped { assertThat(serving(1)).isSameAs(current) }
                    assertThat(serving(1)).isSameAs(inner)
                }
                yield()
                assertThat(serving(1)).isSameAs(outer)
            }
            assertThat(serving()).isSameAs(current)
        }
    }

    @Test
    fun childrenInheritAndKeepWhatTheyOpenToThemselves() {
        runBlocking(Dispatchers.Default) {
            outer.scoped {
                val child = async { inner.scoped { yield(); serving() } }
                val other = async(Elsewhere) { yield(); serving() }
                assertThat(child.await()).isSameAs(inner)
                assertThat(other.await()).isSameAs(outer)
                assertThat(serving()).isSameAs(outer)
            }
        }
    }

    @Test
    fun theScopesOfTheThreadThatLaunchesAreCaptured() {
        val captured = outer.enter().use { DeviceMemoryScope.capture(memory) }
        runBlocking(Elsewhere) {
            assertThat(withContext(captured) { yield(); serving() }).isSameAs(outer)
            inner.scoped {
                assertThat(withContext(captured) { serving() }).isSameAs(outer)
                val none = runBlocking(Elsewhere) { DeviceMemoryScope.capture(memory) }
                assertThat(withContext(none) { yield(); serving() }).isSameAs(current)
                assertThat(serving()).isSameAs(inner)
            }
        }
    }

    @Test
    fun cancellationLeavesTheScope() = onOneThread { thread ->
        val suspended = CompletableDeferred<Unit>()
        val last = ArrayList<Allocator>()
        val job = launchIn(thread) {
            outer.scoped {
                try {
                    suspended.complete(Unit)
                    CompletableDeferred<Unit>().await()
                } finally {
                    last += serving()
                    withContext(NonCancellable) {
                        yield()
                        last += serving()
                    }
                }
            }
        }
        suspended.await()
        job.cancelAndJoin()
        assertThat(last).containsExactly(outer, outer)
        assertThat(thread.executor.serves()).isSameAs(current)
    }

    @Test
    fun anExceptionLeavesTheScope() = onOneThread { thread ->
        val failure = IllegalArgumentException("expected")
        withContext(thread) {
            val thrown = runCatching { outer.scoped { yield(); throw failure } }.exceptionOrNull()
            assertThat(thrown).hasMessage("expected")
            assertThat(serving()).isSameAs(current)
        }
        assertThat(thread.executor.serves()).isSameAs(current)
    }

    @Test
    fun aThousandCoroutinesShareFewThreads() {
        val threads = ConcurrentHashMap.newKeySet<Thread>()
        val allocators = listOf(current, outer, inner)
        val wrong = runBlocking(Dispatchers.Default) {
            List(1000) {
                val own = allocators[it % allocators.size]
                async {
                    own.scoped {
                        List(10) {
                            threads += Thread.currentThread()
                            yield()
                            serving()
                        }.filter { it !== own }
                    }
                }
            }.awaitAll().flatten()
        }
        assertThat(wrong).isEmpty()
        assertThat(threads).hasSizeBetween(1, 64)
        assertThat(outer.statistics(0).allocations()).isEqualTo(3330)
        assertThat(inner.statistics(0).allocations()).isEqualTo(3330)
    }

    @Test
    fun aThreadsScopeIsNotClosedOnAnotherThread() {
        runBlocking(Elsewhere) {
            outer.scoped {
                val open = inner.enter()
                yield()
                assertThat(serving()).isSameAs(outer)
                assertThatExceptionOfType(WrongThreadException::class.java).isThrownBy { open.close() }
            }
            assertThat(serving()).isSameAs(current)
        }
    }

    @Test
    fun aThreadsScopeEndsWhereTheCoroutineSuspends() = onOneThread { thread ->
        withContext(thread) {
            outer.scoped {
                val open = inner.enter()
                yield()
                assertThat(serving()).isSameAs(outer)
                assertThatIllegalStateException().isThrownBy { open.close() }.withMessageContaining("not the innermost")
            }
        }
        assertThat(thread.executor.serves()).isSameAs(current)
    }

    @Test
    fun eachDeviceMemoryHasScopesOfItsOwn() {
        open().use { others ->
            val own = others.open("direct")
            runBlocking(Elsewhere) {
                outer.scoped {
                    own.scoped {
                        yield()
                        assertThat(serving()).isSameAs(outer)
                        others.free(others.allocate(100, 0, 0), 0)
                    }
                }
            }
            assertThat(own.statistics(0).allocations()).isEqualTo(1)
        }
    }

    @Test
    fun aPoolServesUntilItCloses() {
        val pool = MemoryPool.builder(memory).spec("direct").open()
        runBlocking(Elsewhere) {
            pool.scoped {
                yield()
                assertThat(serving()).isSameAs(pool)
                pool.close()
                assertThatIllegalStateException().isThrownBy { serving() }
            }
            assertThat(runCatching { pool.scoped { serving() } }.exceptionOrNull())
                .isInstanceOf(IllegalStateException::class.java)
        }
    }

    @Test
    fun whatIsClosedOrUnknownIsRefusedWhereTheScopeIsMade() {
        val closed = memory.open("direct").apply { close() }
        assertThatIllegalStateException().isThrownBy { DeviceMemoryScope(closed) }
        assertThat(catchThrowable { DeviceMemoryScope(outer, ScopeOptions.all().device(2)) })
            .isInstanceOf(IndexOutOfBoundsException::class.java)
    }
}
