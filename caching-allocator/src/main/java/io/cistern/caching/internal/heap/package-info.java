/// Best fit over ranges of addresses. [BlockHeap] splits ranges into blocks, finds the best free block for a request
/// and merges freed blocks with their neighbours. Plain data without locks: it knows nothing of the memory under the
/// addresses and makes no driver call. An observer is told which addresses become free and which are taken.
package io.cistern.caching.internal.heap;
