/// Offers an allocator to C code as function pointers.
package io.cistern.loader.functions;
