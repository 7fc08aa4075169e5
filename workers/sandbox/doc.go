// Package sandbox runs untrusted Python in isolated processes forked from warm zygotes.
//
// Invariants:
//
//   - Nothing of a call outlives it. Every call has a pid namespace of its own; its init kills and reaps what is left
//     before it writes the status record, and a killed init takes its namespace with it.
//   - Nothing survives the pool's process. A zygote dies with the thread that started it, and all calls are its children.
//   - Failures of the sandbox are Go errors that match [ErrInfrastructure]; they never look like a Status. A call whose
//     status record is missing is lost, not successful. Untrusted code holds no descriptor it could write a status to.
//   - A time-out is a property of the call, not of the machine: it is decided by the CPU time of the whole process tree
//     and by wall time during which no thread of the tree wanted a CPU. A call that was starved is an infrastructure error.
//   - The same Call gives the same text: seeds come from Call.Seed, the hash seed, address layout, visible uid and pid, and
//     the wall clock are fixed. Monotonic clocks, thread interleaving and where a killed call stopped are not.
//   - Start fails closed: canaries run inside a real slot, and a layer that does not hold is an error that names it.
//
// Layers: user, pid, mount, network, IPC, UTS and cgroup namespaces around a zygote; pid, mount and user namespaces around
// each call; a tmpfs root with read-only binds; an allow-list of system calls; Landlock; resource limits; no capabilities;
// no_new_privs; memory and process cgroups in tier A.
//
// Not covered: kernel vulnerabilities, CPU side channels, CPU shares between calls, kernel memory of pipes and sockets in
// tier B (which has no cgroup: memory is limited for each process, and for the tree by sampling).
package sandbox
