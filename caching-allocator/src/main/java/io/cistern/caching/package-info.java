/// The allocator `caching` keeps freed memory and serves later requests from it.
///
/// ```
/// thread cache    one a thread and GPU: freed small blocks by stream and size        no lock
/// stream shard    one a stream for small blocks, one for large: best fit             a short lock
/// pages           physical memory under the addresses of all shards                  driver calls
/// ```
///
/// **The life of a block.** A request of up to 64 KiB takes a block of its size class from the thread's
/// cache, if there is one. Otherwise the stream's shard splits a block from the smallest free run that has
/// enough free bytes. For a larger request, idle pages that left the run count as if they were still there.
/// A block that is freed on its own stream goes back to the thread's cache, or to the shard, which merges
/// it with its free neighbours. A block that another stream used waits in the shard until a fence says that
/// the other stream is done.
///
/// **The life of a page.** A page is created when a miss needs more memory than there is. Its *home* is the
/// address range where blocks lie on it. Once all of it lies in one free block, the page is idle: another
/// address range, perhaps of another stream, may become its home. The old range keeps its mapping, as an
/// *alias*, so that the page can come back without a driver call. A page goes back to the driver by `trim`,
/// or when the driver has no memory left.
///
/// **The life of a miss.** Blocks of the shard in the threads' caches go back to the shard. Then idle pages
/// of any stream move to the request, or pages are created. While most of the device is free, the allocator
/// does not move a page from a stream that is still at work: it creates pages, up to an eighth more than
/// the peak of live bytes. Before the request fails, memory is reclaimed.
///
/// The spec of an allocator is `caching:OPTION=VALUE,…`; [io.cistern.caching.options.CachingOption] has all
/// options.
package io.cistern.caching;
