// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A signal that wakes a waiting lane, or ends the lane's next wait at once.
final class Signal: Sendable {
    /// Safe: semaphores are made for use from many threads, and this one lives as long as the object.
    private nonisolated(unsafe) let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() {
        sem_init(self.semaphore, 0, 0)
    }

    deinit {
        sem_destroy(self.semaphore)
        self.semaphore.deallocate()
    }

    func send() {
        sem_post(self.semaphore)
    }

    func wait() {
        while sem_wait(self.semaphore) != 0 {}
    }

    func wait(nanoseconds: Int) {
        var end = timespec()
        clock_gettime(CLOCK_REALTIME, &end)
        end.tv_nsec += nanoseconds
        if end.tv_nsec >= 1_000_000_000 {
            end.tv_nsec -= 1_000_000_000
            end.tv_sec += 1
        }
        _ = sem_timedwait(self.semaphore, &end)
    }
}
