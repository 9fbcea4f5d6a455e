/// Events in device memory, and reports about live blocks, leaks and requests that found no memory.
package io.cistern.diagnostics;
