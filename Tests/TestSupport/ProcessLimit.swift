import Glibc

/// A limit of the process that a test runs in: for exit tests, which have a process of their own.
public enum ProcessLimit {
    /// Lets the process open no further file until `body` is over.
    ///
    /// What is open stays open.
    public static func withoutDescriptors<Result>(_ body: () async throws -> Result) async throws -> Result {
        var old = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old) == 0 else {
            throw TestSupportError("The limit of open files can't be read: errno \(errno).")
        }
        var low = rlimit(rlim_cur: 0, rlim_max: old.rlim_max)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &low)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old) }
        return try await body()
    }

    /// Lets the process take at most so much more address space until `body` is over.
    public static func withMemory<Result>(atMost byteCount: Int, _ body: () throws -> Result) rethrows -> Result {
        var old = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &old)
        var low = rlimit(rlim_cur: rlim_t(ThisProcess.addressSpaceBytes + byteCount), rlim_max: old.rlim_max)
        setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &low)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &old) }
        return try body()
    }
}
