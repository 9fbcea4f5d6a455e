/// Provides handles of cuDNN from a pool, for code that calls the library itself.
package io.cistern.handles.cudnn;
