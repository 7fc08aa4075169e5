// Package sandbox runs untrusted Python in isolated processes forked from warm zygotes: programs as calls, each in a process of
// its own, and cells as sessions, which keep one process for a trajectory.
//
// Invariants:
//
//   - Nothing of a call outlives it. Every call has a pid namespace of its own; its init kills and reaps what is left
//     before it writes the status record, and a killed init takes its namespace with it.
//   - Nothing of a session runs between its cells, and nothing of it outlives its end.
//   - Nothing survives the pool's process. A zygote dies with the thread that started it, and all calls are its children.
//   - Failures of the sandbox are Go errors that match [ErrInfrastructure]; they never look like a Status. A call whose
//     status record is missing is lost, not successful. Untrusted code holds no descriptor it could write a status to; the
//     end of a cell is its session's own word, as an exit code is, and can mislead nobody but that session.
//   - A time-out is a property of the call, not of the machine: it is decided by the CPU time of the whole process tree
//     and by wall time during which no thread of the tree wanted a CPU. A call that was starved is an infrastructure error.
//   - The same Call gives the same text: seeds come from Call.Seed, the hash seed, address layout, visible uid and pid, and
//     the wall clock are fixed, and the profile is a function of the text. Monotonic clocks, thread interleaving and where a
//     killed call stopped are not.
//   - Start fails closed: canaries run inside a slot of every zygote, when it starts, when it is started again and every
//     hour, and a layer that does not hold is an error that names it. Only Options.Insecure goes without.
//
// Layers: user, pid, mount, network, IPC, UTS and cgroup namespaces around a zygote; pid, mount and user namespaces around
// each call; a tmpfs root with read-only binds; an allow-list of system calls; Landlock; resource limits; no capabilities;
// no_new_privs; memory, process and CPU cgroups in tier A.
//
// Not covered: kernel vulnerabilities, CPU side channels, kernel memory of pipes and sockets in tier B (which has no cgroup:
// memory is limited for each process, and for the tree by sampling, and CPU is not shared out).
package sandbox
