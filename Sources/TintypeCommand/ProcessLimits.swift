// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import TintypeConcurrency

/// The limits that the process needs before its work may begin.
///
/// The library reports refused resources, but the runtime below it does not: the cooperative pool waits for ever for a
/// thread that cannot start, and a small allocation that fails ends the process.
enum ProcessLimits {
    /// The missing resource, in a full sentence.
    struct Shortage: Error, CustomStringConvertible {
        let description: String
    }

    /// The descriptors that the runtime takes, and one for a file that is read.
    private static let neededDescriptors: CInt = 4
    /// The memory that a load of a small image takes beside the threads.
    private static let neededMemory = 32 << 20
    /// The threads of downloads, of both tiers of the cache, of look-ups of names, and of a terminal with images.
    private static let ownThreadCount = 13

    /// Adapts to little memory if it is limited, and checks that there is enough to start.
    static func prepare() throws(Shortage) {
        if cshims_has_memory_limit() != 0 { cshims_spare_address_space() }
        guard cshims_has_descriptors(self.neededDescriptors) != 0 else {
            throw Shortage(
                description: "The process may open too few files; raise its limit to 64 or more (ulimit -n)."
            )
        }
        guard cshims_has_room(self.neededMemory) != 0 else {
            throw Shortage(description: "There is no memory to begin with; raise the limit of memory (ulimit -v).")
        }
        // The pool has a thread for each core and each of two priorities, decoding has one for each core. On a machine
        // with many cores a command has not enough to do for all of them.
        let coreCount = min(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 8)
        try self.checkThreads(3 * coreCount + self.ownThreadCount)
    }

    /// Lets the process open as many files as its hard limit permits: a server has one for each connection.
    static func raiseDescriptorLimit() {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }

    /// Starts so many threads at once, and ends them again.
    private static func checkThreads(_ count: Int) throws(Shortage) {
        let end = Monitor()
        var threads: [POSIXThread] = []
        var shortage: Shortage?
        do throws(ThreadError) {
            for _ in 0..<count { threads.append(try POSIXThread.start(name: "tintype-probe") { end.wait() }) }
        } catch {
            shortage = Shortage(description: "\(error.message) At least \(count) threads are needed.")
        }
        end.open()
        for thread in threads { thread.join() }
        if let shortage { throw shortage }
    }

    /// Lets threads through once it is open.
    private final class Monitor: Sendable {
        /// Sound: locks are made for many threads, and it lives as long as they wait.
        private nonisolated(unsafe) let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

        init() {
            pthread_rwlock_init(self.lock, nil)
            pthread_rwlock_wrlock(self.lock)
        }

        deinit {
            pthread_rwlock_destroy(self.lock)
            self.lock.deallocate()
        }

        func wait() {
            pthread_rwlock_rdlock(self.lock)
            pthread_rwlock_unlock(self.lock)
        }

        func open() {
            pthread_rwlock_unlock(self.lock)
        }
    }
}
