/// An allocator as C function pointers.
package io.cistern.loader.functions;
