/// Handles of cuDNN from a pool, for code that calls the library.
package io.cistern.handles.cudnn;
