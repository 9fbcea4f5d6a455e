package io.cistern.examples.scala

import io.cistern.{CudaStream, DeviceMemory, MemoryPool, ScopeCarrier}
import io.cistern.buffers.DeviceBuffer

import java.lang.foreign.{MemorySegment, ValueLayout}
import java.util.concurrent.{ExecutorService, Executors}
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.Duration
import scala.util.Using

/** Closes streams, buffers and pools with `Using`, and allocates from a pool in futures.
  *
  * Runs on the GPU, or on the simulated one if there is no GPU.
  */
object FuturesInAPool:
  private val Count = 1 << 20
  private val Device = 0

  def main(arguments: Array[String]): Unit =
    Using.resources(
      CudaStream.open(DeviceMemory.system(), Device),
      MemoryPool.of("caching"),
      Executors.newFixedThreadPool(4)
    ) { (stream, pool, workers) =>
      println(s"the sum is ${sum(Array.fill(Count)(1f), stream)}")
      Using.resource(pool.enter()) { _ => work(pool, stream, workers) }
      Using.resource(allocate(stream)) { _ => println(s"outside the scope it has ${pool.liveBlockCount()}") }
    }

  private def sum(numbers: Array[Float], stream: CudaStream): Float =
    Using.resource(DeviceBuffer.allocate(4L * numbers.length, stream)) { buffer =>
      buffer.copyFrom(MemorySegment.ofArray(numbers))
      buffer.elements(ValueLayout.JAVA_FLOAT).toFloats.sum
    }

  private def work(pool: MemoryPool, stream: CudaStream, workers: ExecutorService): Unit =
    given ExecutionContext = ExecutionContext.fromExecutor(ScopeCarrier.capture().executor(workers))
    val buffers = Await.result(Future.traverse(Vector.range(0, 100))(_ => Future(allocate(stream))), Duration.Inf)
    println(s"100 futures have ${pool.liveBlockCount()} blocks of the pool")
    buffers.foreach(_.close())

  private def allocate(stream: CudaStream): DeviceBuffer = DeviceBuffer.allocate(1L << 16, stream)
