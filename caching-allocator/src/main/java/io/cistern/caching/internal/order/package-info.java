/// Proves that the work of a stream has finished, or that another stream comes after it. [Fences] names streams
/// and their ends; [CrossStreamOrder] lets memory of one stream serve another.
package io.cistern.caching.internal.order;
