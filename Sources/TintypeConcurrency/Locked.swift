// SPDX-License-Identifier: Apache-2.0

#if SANITIZE_THREAD
public import Glibc
#else
public import Synchronization
#endif

/// A value behind a lock.
///
/// This is `Synchronization.Mutex`, except in thread-sanitizer builds: on Linux
/// `Mutex` locks with futex calls that the sanitizer does not see, so it reports
/// guarded accesses as races. It does see POSIX mutexes.
///
/// Sendable although unchecked: the value is only reached through ``withLock(_:)``,
/// which excludes every other thread.
public struct Locked<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    #if SANITIZE_THREAD
    @usableFromInline let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    @usableFromInline let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    /// Puts `value` behind a new lock.
    public init(_ value: consuming sending Value) {
        pthread_mutex_init(self.mutex, nil)
        self.value.initialize(to: value)
    }

    deinit {
        self.value.deinitialize(count: 1)
        self.value.deallocate()
        pthread_mutex_destroy(self.mutex)
        self.mutex.deallocate()
    }
    #else
    @usableFromInline let mutex: Mutex<Value>

    /// Puts `value` behind a new lock.
    @inlinable public init(_ value: consuming sending Value) {
        self.mutex = Mutex(value)
    }
    #endif

    /// Runs `body` with the value while holding the lock.
    ///
    /// Never call out of `body`: no continuation is resumed, no stream yielded to and no
    /// task cancelled under the lock.
    @inlinable public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        #if SANITIZE_THREAD
        pthread_mutex_lock(self.mutex)
        defer { pthread_mutex_unlock(self.mutex) }
        return try body(&self.value.pointee)
        #else
        return try self.mutex.withLock(body)
        #endif
    }
}
