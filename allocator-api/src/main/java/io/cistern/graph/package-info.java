/// CUDA graphs and their memory: [GraphCapture][io.cistern.graph.GraphCapture] captures a stream into a
/// graph, [CudaGraph][io.cistern.graph.CudaGraph] launches the graph, and
/// [GraphMemory][io.cistern.graph.GraphMemory] is its memory.
package io.cistern.graph;
