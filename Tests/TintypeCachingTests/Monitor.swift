// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A value behind a POSIX mutex, with a condition to wait for.
///
/// It is for threads that a test starts, because they may block. The code only accesses the value while it holds the
/// mutex, so the type is safe to share.
final class Monitor<Value>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    /// The value in a separate block instead of a stored property.
    ///
    /// The address of an empty property is that of the memory after the object, which the thread sanitizer takes for a
    /// race.
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    init(_ value: sending Value) {
        self.value.initialize(to: value)
        pthread_mutex_init(self.mutex, nil)
        pthread_cond_init(self.condition, nil)
    }

    deinit {
        pthread_cond_destroy(self.condition)
        pthread_mutex_destroy(self.mutex)
        self.condition.deallocate()
        self.mutex.deallocate()
        self.value.deinitialize(count: 1)
        self.value.deallocate()
    }

    /// Runs `body` with the value under the lock.
    func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(self.mutex)
        defer { pthread_mutex_unlock(self.mutex) }
        return try body(&self.value.pointee)
    }

    /// Runs `body` under the lock, and repeats it after each ``notify()`` until it returns a value.
    func wait<Result>(for body: (inout Value) -> Result?) -> Result {
        pthread_mutex_lock(self.mutex)
        defer { pthread_mutex_unlock(self.mutex) }
        while true {
            if let result = body(&self.value.pointee) { return result }
            pthread_cond_wait(self.condition, self.mutex)
        }
    }

    /// Wakes the waiting threads after a change of the value.
    func notify() {
        pthread_cond_broadcast(self.condition)
    }
}
