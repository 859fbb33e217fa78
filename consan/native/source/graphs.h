// Graphs: what each is made of is looked up when it is instantiated, and counted at its launches.
#pragma once

#include "launches.h"

enum { KERNEL_NODE = 0, CHILD_NODE = 4, CONDITIONAL_NODE = 13 };
static const char conditional[] = "kernels in a conditional node of a graph";  // its address stands for them as a handle

struct KernelNode {  // CUDA_KERNEL_NODE_PARAMS_v2
    Handle function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
    Handle kernel, context;
};

struct Graph {
    struct Graph *next;
    Handle handle;
    size_t count;
    Handle kernels[];
};
static pthread_mutex_t graphs_turn = PTHREAD_MUTEX_INITIALIZER;
static struct Graph *graphs;

static Handle name_of_node(Handle handle, const char *function) {
    const char *name = NULL;
    Result (*get)(const char **, Handle) = of_driver(function);
    if (handle && get && get(&name, handle) == 0) report(FOUND, (uintptr_t)handle, 0, name, name ? strnlen(name, LONGEST) : 0);
    return handle;
}

static Handle kernel_of(Handle node) {
    struct KernelNode about = {0};
    Result (*get)(Handle, struct KernelNode *) = of_driver("cuGraphKernelNodeGetParams_v2");
    if (get == NULL || get(node, &about) != 0) return NULL;
    return about.function ? name_of_node(about.function, "cuFuncGetName") : name_of_node(about.kernel, "cuKernelGetName");
}

static Handle *nodes_of(Handle graph, size_t *count) {
    Result (*list)(Handle, Handle *, size_t *) = of_driver("cuGraphGetNodes");
    *count = 0;
    Handle *nodes = list && list(graph, NULL, count) == 0 ? calloc(*count + 1, sizeof *nodes) : NULL;
    if (nodes && list(graph, nodes, count) == 0) return nodes;
    free(nodes);
    *count = 0;
    return NULL;
}

static struct Graph *with_kernel(struct Graph *graph, Handle kernel) {
    struct Graph *larger = kernel && graph ? realloc(graph, sizeof *graph + (graph->count + 1) * sizeof kernel) : NULL;
    if (larger == NULL) return graph;
    larger->kernels[larger->count++] = kernel;
    return larger;
}

static struct Graph *with_nodes(struct Graph *graph, Handle from) {
    Result (*type_of)(Handle, int *) = of_driver("cuGraphNodeGetType"), (*child_of)(Handle, Handle *) = of_driver("cuGraphChildGraphNodeGetGraph");
    size_t count;
    Handle *nodes = nodes_of(from, &count), child;
    for (size_t i = 0; i < count; i++) {
        int type = -1;
        if (type_of == NULL || type_of(nodes[i], &type) != 0) continue;
        if (type == KERNEL_NODE) graph = with_kernel(graph, kernel_of(nodes[i]));
        if (type == CHILD_NODE && child_of && child_of(nodes[i], &child) == 0) graph = with_nodes(graph, child);
        if (type != CONDITIONAL_NODE) continue;
        report(FOUND, (uintptr_t)conditional, 0, conditional, strlen(conditional));
        graph = with_kernel(graph, (Handle)conditional);
    }
    free(nodes);
    return graph;
}

static void forget_graph(Handle handle) {
    pthread_mutex_lock(&graphs_turn);
    for (struct Graph **at = &graphs; *at; at = &(*at)->next) {
        if ((*at)->handle != handle) continue;
        struct Graph *gone = *at;
        *at = gone->next;
        free(gone);
        break;
    }
    pthread_mutex_unlock(&graphs_turn);
}

static Result instantiated(Result result, Handle *made, Handle from) {
    struct Graph *graph = result == 0 && made && socket_path() ? calloc(1, sizeof *graph) : NULL;
    if (graph == NULL) return result;
    graph = with_nodes(graph, from);
    forget_graph(graph->handle = *made);
    pthread_mutex_lock(&graphs_turn);
    graph->next = graphs;
    graphs = graph;
    pthread_mutex_unlock(&graphs_turn);
    return result;
}

static Result graph_launched(Result result, Handle handle) {
    pthread_mutex_lock(&graphs_turn);
    for (struct Graph *graph = graphs; graph; graph = graph->next)
        for (size_t i = 0; result == 0 && graph->handle == handle && i < graph->count; i++) count(graph->kernels[i]);
    pthread_mutex_unlock(&graphs_turn);
    return result;
}

// A kernel that the program puts into a graph, or changes there. The first version of the parameters ends before `kernel`.
static bool for_graph(struct KernelNode *about, bool first_version, Handle instead) {
    struct Shape shape = {.cluster = {1, 1, 1}, .shared = about->shared, .context = first_version ? 0 : (uintptr_t)about->context};
    memcpy(shape.grid, about->grid, sizeof shape.grid);
    memcpy(shape.block, about->block, sizeof shape.block);
    Handle own = about->function ? about->function : first_version ? NULL : about->kernel, other = own;
    if (!without_log(&other, instead, shape)) return false;
    if (other == own) return true;
    about->function = other;
    if (!first_version) about->kernel = NULL;
    return true;
}

struct NodeParams {  // CUgraphNodeParams
    int type, unused[3];
    union {
        struct KernelNode kernel;
        char bytes[240];
    };
};

#define FIRST_BYTES offsetof(struct KernelNode, kernel)
#define KERNEL_NODE_CALL(name, instead, bytes, parameters, ...) \
    EXPORTED Result name parameters { \
        struct KernelNode about = {0}; \
        if (given) memcpy(&about, given, bytes); \
        if (given && !for_graph(&about, bytes == FIRST_BYTES, instead)) return UNKNOWN; \
        return ORIGINAL(name, __VA_ARGS__, given ? &about : NULL); \
    }
#define NODE_CALL(name, instead, parameters, ...) \
    EXPORTED Result name parameters { \
        struct NodeParams about = {0}; \
        if (given == NULL || *(const int *)given != KERNEL_NODE) return ORIGINAL(name, __VA_ARGS__, given); \
        memcpy(&about, given, sizeof about); \
        if (!for_graph(&about.kernel, false, instead)) return UNKNOWN; \
        return ORIGINAL(name, __VA_ARGS__, &about); \
    }
#define ADDED (Handle * node, Handle graph, const Handle *before, size_t count, void *given)

KERNEL_NODE_CALL(cuGraphAddKernelNode, NO_LAUNCH, FIRST_BYTES, ADDED, node, graph, before, count)
KERNEL_NODE_CALL(cuGraphAddKernelNode_v2, NO_LAUNCH, sizeof about, ADDED, node, graph, before, count)
KERNEL_NODE_CALL(cuGraphKernelNodeSetParams, CHANGED_NODE, FIRST_BYTES, (Handle node, const void *given), node)
KERNEL_NODE_CALL(cuGraphKernelNodeSetParams_v2, CHANGED_NODE, sizeof about, (Handle node, const void *given), node)
KERNEL_NODE_CALL(cuGraphExecKernelNodeSetParams, CHANGED_NODE, FIRST_BYTES, (Handle graph, Handle node, const void *given), graph, node)
KERNEL_NODE_CALL(cuGraphExecKernelNodeSetParams_v2, CHANGED_NODE, sizeof about, (Handle graph, Handle node, const void *given), graph, node)
NODE_CALL(cuGraphAddNode, NO_LAUNCH, ADDED, node, graph, before, count)
NODE_CALL(cuGraphAddNode_v2, NO_LAUNCH, (Handle * node, Handle graph, const Handle *before, const void *edges, size_t count, void *given), node, graph, before,
          edges, count)
NODE_CALL(cuGraphNodeSetParams, CHANGED_NODE, (Handle node, void *given), node)
NODE_CALL(cuGraphExecNodeSetParams, CHANGED_NODE, (Handle graph, Handle node, void *given), graph, node)

// The forms differ in what follows the graph.
#define INSTANTIATE(name) \
    EXPORTED Result name(Handle *made, Handle from, uint64_t a, uint64_t b, uint64_t c) { \
        return instantiated(ORIGINAL(name, made, from, a, b, c), made, from); \
    }
#define GRAPH_LAUNCH(name) \
    EXPORTED Result name(Handle graph, Handle stream) { return graph_launched(ORIGINAL(name, graph, stream), graph); }

INSTANTIATE(cuGraphInstantiate)
INSTANTIATE(cuGraphInstantiate_v2)
INSTANTIATE(cuGraphInstantiateWithFlags)
INSTANTIATE(cuGraphInstantiateWithParams)
INSTANTIATE(cuGraphInstantiateWithParams_ptsz)
GRAPH_LAUNCH(cuGraphLaunch)
GRAPH_LAUNCH(cuGraphLaunch_ptsz)

EXPORTED Result cuGraphExecDestroy(Handle graph) {
    forget_graph(graph);
    return ORIGINAL(cuGraphExecDestroy, graph);
}
