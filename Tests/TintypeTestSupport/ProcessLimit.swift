// SPDX-License-Identifier: Apache-2.0

import CTintypeDescriptorLimit
import Glibc

/// Limits on the process of a test, for exit tests, which have a process of their own.
public enum ProcessLimit {
    /// Lets the process open one more file, but not two, until `body` ends.
    ///
    /// Open files stay open. The files that libdispatch opens to check its threads are exempt. It would end the process
    /// if it could not open them, and the one free descriptor may be in use at that moment.
    public static func withOneDescriptor<Result>(_ body: () async throws -> Result) async throws -> Result {
        let free = dup(STDERR_FILENO)
        guard free >= 0 else { throw TestSupportError("The limit of open files cannot be tried: errno \(errno).") }
        close(free)
        // The system always uses the lowest free number.
        return try await self.withDescriptors(below: free + 1, body)
    }

    /// Refuses descriptors with the number `limit` or a higher one to the process, but not to libdispatch.
    private static func withDescriptors<Result>(
        below limit: CInt,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        var old = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old)
        var low = rlimit(rlim_cur: rlim_t(limit), rlim_max: old.rlim_max)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &low)
        descriptor_limit_spare_dispatch(true)
        defer {
            descriptor_limit_spare_dispatch(false)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old)
        }
        return try await body()
    }

    /// Lets the process open no more files until `body` ends, except for the files that libdispatch opens.
    public static func withoutDescriptors<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        try await self.withDescriptors(below: 0, body)
    }

    /// Lets the process use at most so much more address space until `body` ends.
    public static func withMemory<Result>(
        atMost byteCount: Int,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        var old = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &old)
        var low = rlimit(rlim_cur: rlim_t(ThisProcess.addressSpaceBytes + byteCount), rlim_max: old.rlim_max)
        setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &low)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &old) }
        return try await body()
    }
}
