package io.cistern.examples.kotlin

import io.cistern.CudaStream
import io.cistern.DeviceMemory
import io.cistern.MemoryPool
import io.cistern.buffers.DeviceBuffer
import io.cistern.kotlin.scoped
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import java.lang.foreign.MemorySegment
import java.lang.foreign.ValueLayout

private const val COUNT = 1 shl 20
private const val DEVICE = 0

/**
 * Closes streams, buffers and pools with `use`, and allocates from a pool in coroutines, whichever threads they run on.
 *
 * Runs on the GPU, or on the simulated one if there is no GPU.
 */
fun main() {
    CudaStream.open(DeviceMemory.system(), DEVICE).use { stream ->
        println("the sum is ${sum(FloatArray(COUNT) { 1f }, stream)}")
        MemoryPool.of("caching").use { pool -> runBlocking(Dispatchers.Default) { work(pool, stream) } }
    }
}

private fun sum(numbers: FloatArray, stream: CudaStream): Float =
    DeviceBuffer.allocate(4L * numbers.size, stream).use { buffer ->
        buffer.copyFrom(MemorySegment.ofArray(numbers))
        buffer.elements(ValueLayout.JAVA_FLOAT).toFloats().sum()
    }

private suspend fun work(pool: MemoryPool, stream: CudaStream) {
    pool.scoped {
        val buffers = List(100) { async { allocateLater(stream) } }.awaitAll()
        println("100 coroutines have ${pool.liveBlockCount()} blocks of the pool")
        buffers.forEach(DeviceBuffer::close)
    }
    allocateLater(stream).use { println("outside the scope it has ${pool.liveBlockCount()}") }
}

private suspend fun allocateLater(stream: CudaStream): DeviceBuffer {
    yield() // and go on, maybe on another thread
    return DeviceBuffer.allocate(1L shl 16, stream)
}
