// Arrays of handles that calls about graphs give to the program: consan writes into its memory, and cannot make any there.
#include <stdlib.h>

enum { CONDITIONAL = 13, MOST_ENDS = 512 };

struct node_params {  // CUgraphNodeParams of a conditional node
    int type, unused[3];
    word condition;
    int kind;
    unsigned count;
    word *graphs;
};

// The graphs of a conditional node: their array is there as long as the node.
static void make_array(word params) {
    struct node_params *node = (void *)(uintptr_t)params;
    if (node && node->type == CONDITIONAL) node->graphs = calloc((size_t)node->count + 1, sizeof(word));
}

// The nodes that the next one of a captured stream comes after: their array is there until the thread's next call. Libraries that are loaded
// late get little static memory for threads.
static word ends_of_thread(void) {
    static __thread word *ends;
    if (!ends) ends = calloc(MOST_ENDS, sizeof *ends);
    return (word)(uintptr_t)ends;
}
