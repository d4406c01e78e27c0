/* Counts the bytes that a program hands to MPI, through MPI's profiling interface: preloaded, it sees every call. */

#include <mpi.h>

enum { ALLREDUCE, BROADCAST, REDUCE, ALLGATHER, REDUCE_SCATTER, SEND, OPERATIONS };

static long long counted[OPERATIONS];

long long pmpi_bytes(int operation) { return counted[operation]; }

static long long bytes(MPI_Count count, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return (long long)count * size;
}

static int ranks(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}

#define COUNTED(NAME, OPERATION, BYTES, PARAMETERS, ARGUMENTS) \
  int MPI_##NAME PARAMETERS {                                  \
    counted[OPERATION] += BYTES;                               \
    return PMPI_##NAME ARGUMENTS;                              \
  }

/* Every function comes with counts of type int and, since MPI 4, of type MPI_Count. */
#define FUNCTIONS(SUFFIX, COUNT)                                                                                       \
  COUNTED(Allreduce##SUFFIX, ALLREDUCE, bytes(n, t),                                                                   \
          (const void *s, void *r, COUNT n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))                 \
  COUNTED(Iallreduce##SUFFIX, ALLREDUCE, bytes(n, t),                                                                  \
          (const void *s, void *r, COUNT n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *q),                     \
          (s, r, n, t, o, c, q))                                                                                       \
  COUNTED(Bcast##SUFFIX, BROADCAST, bytes(n, t), (void *b, COUNT n, MPI_Datatype t, int root, MPI_Comm c),             \
          (b, n, t, root, c))                                                                                          \
  COUNTED(Ibcast##SUFFIX, BROADCAST, bytes(n, t),                                                                      \
          (void *b, COUNT n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *q), (b, n, t, root, c, q))             \
  COUNTED(Reduce##SUFFIX, REDUCE, bytes(n, t),                                                                         \
          (const void *s, void *r, COUNT n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c), (s, r, n, t, o, root, c)) \
  COUNTED(Ireduce##SUFFIX, REDUCE, bytes(n, t),                                                                        \
          (const void *s, void *r, COUNT n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c, MPI_Request *q),           \
          (s, r, n, t, o, root, c, q))                                                                                 \
  COUNTED(Allgather##SUFFIX, ALLGATHER, bytes(n, t),                                                                   \
          (const void *s, COUNT n, MPI_Datatype t, void *r, COUNT m, MPI_Datatype u, MPI_Comm c),                      \
          (s, n, t, r, m, u, c))                                                                                       \
  COUNTED(Iallgather##SUFFIX, ALLGATHER, bytes(n, t),                                                                  \
          (const void *s, COUNT n, MPI_Datatype t, void *r, COUNT m, MPI_Datatype u, MPI_Comm c, MPI_Request *q),      \
          (s, n, t, r, m, u, c, q))                                                                                    \
  COUNTED(Reduce_scatter_block##SUFFIX, REDUCE_SCATTER, bytes(n, t) * ranks(c),                                        \
          (const void *s, void *r, COUNT n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))                 \
  COUNTED(Ireduce_scatter_block##SUFFIX, REDUCE_SCATTER, bytes(n, t) * ranks(c),                                       \
          (const void *s, void *r, COUNT n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *q),                     \
          (s, r, n, t, o, c, q))                                                                                       \
  COUNTED(Isend##SUFFIX, SEND, bytes(n, t),                                                                            \
          (const void *b, COUNT n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *q),                       \
          (b, n, t, to, tag, c, q))

FUNCTIONS(, int)
FUNCTIONS(_c, MPI_Count)
