import Glibc
import TintypeConcurrency
@_exported public import TintypeErrors

/// Why a cache could not do what it was asked.
///
/// A missing, expired or damaged entry is a miss and never an error.
public struct CacheError: TintypeError {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do, in a full sentence.
    public let message: String
    /// The system call that failed, if one did.
    public let underlyingError: SystemCallError?

    /// Creates an error.
    public init(code: Code, message: String, underlyingError: SystemCallError? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
    }

    public var description: String {
        guard let underlyingError = self.underlyingError else { return "\(self.code): \(self.message)" }
        return "\(self.code): \(self.message) (\(underlyingError))"
    }

    /// The thread of a lane was refused.
    static func threadRefused(_ error: ThreadError) -> CacheError {
        CacheError(code: error.code, message: error.message)
    }

    /// The error of a store, a removal or the making of a folder that failed in `directory`.
    static func writing(_ error: SystemCallError, in directory: String) -> CacheError {
        let folder = "cache folder \(directory)"
        let (code, message): (Code, String) =
            switch error.number {
            case _ where error.meansNoInode:
                (.diskFull, "The disk of the \(folder) has no room for another file; remove some files from it.")
            case ENOSPC: (.diskFull, "The disk of the \(folder) is full; free some space or lower the size limit.")
            case EDQUOT: (.diskFull, "The disk quota for the \(folder) is used up; raise it or lower the size limit.")
            case EACCES, EPERM:
                (
                    .cacheNotWritable,
                    "The \(folder) is not writable by this user; change its permissions or choose another."
                )
            case EROFS:
                (.cacheNotWritable, "The \(folder) is on a read-only file system; choose a folder that can be written.")
            case EEXIST where error.call == "rename":
                (
                    .cacheNotWritable,
                    "Something that no cache has written is in the place of an entry in \(directory); move it away."
                )
            case ENOTDIR, EEXIST, EISDIR, ELOOP:
                (
                    .cacheNotWritable,
                    "The \(folder) can't be made because something else is in its place; choose another."
                )
            case ENAMETOOLONG, ENOENT:
                (.cacheNotWritable, "The \(folder) can't be made; check its path or choose another.")
            default: self.general(error, in: directory)
            }
        return CacheError(code: code, message: message, underlyingError: error)
    }

    /// The error of a read that failed in `directory`.
    static func reading(_ error: SystemCallError, in directory: String) -> CacheError {
        let folder = "cache folder \(directory)"
        let (code, message): (Code, String) =
            switch error.number {
            case EACCES, EPERM:
                (.notReadable, "An entry of the \(folder) is not readable by this user; change the permissions.")
            default: self.general(error, in: directory)
            }
        return CacheError(code: code, message: message, underlyingError: error)
    }

    /// A file of the cache could not be deleted.
    static func removing(_ error: SystemCallError, of path: String) -> CacheError {
        CacheError(
            code: .notRemovable,
            message:
                "\(path) of the cache can't be deleted and goes on counting; check its permissions and attributes.",
            underlyingError: error
        )
    }

    /// The catalogue of `directory` can't be shared.
    static func catalogue(_ error: SystemCallError, in directory: String) -> CacheError {
        let reason =
            error.number == EEXIST
            ? "a file or folder of that name was not made by the cache; move it away"
            : "check the permissions and the space of the disk"
        return CacheError(
            code: .catalogueUnusable,
            message: "The cache folder \(directory) can't have a catalogue: \(reason).",
            underlyingError: error
        )
    }

    /// Others than this user and root may change what the cache of `directory` serves.
    static func exposed(to strangers: String, in directory: String) -> CacheError {
        CacheError(
            code: .cacheNotPrivate,
            message:
                "\(strangers) may change the cache folder \(directory), and so the images that are served from it; make it this user's own (chown, chmod 700) or choose another."
        )
    }

    /// An entry of `byteCount` bytes does not fit in a cache of `limit` bytes.
    static func tooLarge(_ byteCount: Int, limit: Int, in directory: String) -> CacheError {
        CacheError(
            code: .entryTooLarge,
            message:
                "An entry of \(byteCount) bytes is over the limit of \(limit) bytes of the cache folder \(directory); raise it."
        )
    }

    /// The size limit left no room, because others kept all of it.
    static func noRoom(in directory: String) -> CacheError {
        CacheError(
            code: .diskFull,
            message:
                "No room could be made within the size limit of the cache folder \(directory); raise the limit or check what else uses the folder."
        )
    }

    /// The cache of `directory` was shut down.
    static func shutDown(_ directory: String) -> CacheError {
        CacheError(
            code: .shutDown,
            message: "The cache of the folder \(directory) was shut down; use it before that, or make a new one."
        )
    }

    /// A store in the background was refused because `byteCount` bytes are waiting already.
    static func tooManyPending(_ byteCount: Int, in directory: String) -> CacheError {
        CacheError(
            code: .tooManyPendingStores,
            message:
                "The disk of the cache folder \(directory) is too slow: \(byteCount) bytes wait to be stored. Choose a faster disk."
        )
    }

    private static func general(_ error: SystemCallError, in directory: String) -> (Code, String) {
        let folder = "cache folder \(directory)"
        return switch error.number {
        case ETIMEDOUT where error == .lockTimedOut:
            (
                .lockTimedOut,
                "Another process keeps the lock of the \(folder); see whether it was stopped (\(directory)/lock)."
            )
        case EMFILE:
            (
                .tooManyOpenFiles,
                "The process has too many open files to use the \(folder); raise its limit (ulimit -n)."
            )
        case ENFILE:
            (.tooManyOpenFiles, "The system has too many open files to use the \(folder); raise fs.file-max.")
        case ENOMEM: (.outOfMemory, "There is no memory to use an entry of the \(folder); lower the limits.")
        case EIO: (.diskFault, "The disk of the \(folder) failed; check it, or choose another folder.")
        default: (.unexpected, "The \(folder) can't be used: \(error). Check it, or choose another folder.")
        }
    }
}

extension TintypeErrorCode {
    /// The disk, or the quota of the user, is full (`ENOSPC`, `EDQUOT`).
    public static let diskFull = TintypeErrorCode("diskFull", .internalFailure)
    /// The folder can't be written to (`EACCES`, `EPERM`, `EROFS`, `ENOTDIR` and their like).
    public static let cacheNotWritable = TintypeErrorCode("cacheNotWritable", .internalFailure)
    /// An entry or the folder can't be read (`EACCES`, `EPERM`).
    public static let notReadable = TintypeErrorCode("notReadable", .internalFailure)
    /// One entry is bigger than the whole size limit.
    public static let entryTooLarge = TintypeErrorCode("entryTooLarge", .internalFailure)
    /// The disk is so slow that the stores which wait in memory have reached their limit.
    public static let tooManyPendingStores = TintypeErrorCode("tooManyPendingStores", .busy)
    /// The disk failed to read or write (`EIO`).
    public static let diskFault = TintypeErrorCode("diskFault", .internalFailure)
    /// Another process kept the folder's lock for longer than this one waits; it may have been stopped.
    public static let lockTimedOut = TintypeErrorCode("lockTimedOut", .busy)
    /// A file of the cache can't be deleted; its bytes go on counting towards the limit.
    public static let notRemovable = TintypeErrorCode("notRemovable", .internalFailure)
    /// The catalogue of the folder can't be shared with other processes: each knows only what it does itself.
    public static let catalogueUnusable = TintypeErrorCode("catalogueUnusable", .internalFailure)
    /// Another user may change the folder, and so what the cache serves; the folder is used all the same.
    public static let cacheNotPrivate = TintypeErrorCode("cacheNotPrivate", .internalFailure)
}

/// A system call that failed.
public struct SystemCallError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the call, such as `open`.
    public let call: String
    /// The value of `errno`.
    public let number: Int32

    /// Creates an error.
    public init(call: String, number: Int32) {
        self.call = call
        self.number = number
    }

    /// The error of the call that just returned on this thread.
    static func last(_ call: String) -> SystemCallError {
        SystemCallError(call: call, number: errno)
    }

    /// Whether it says that the file system, or the quota of the user, has no inode left for another file.
    var meansNoInode: Bool {
        (self.number == ENOSPC || self.number == EDQUOT) && (self.call == "open" || self.call == "mkdir")
    }

    /// Whether it says that there is nothing at a path.
    var meansMissing: Bool { self.number == ENOENT || self.number == ENOTDIR }

    public var description: String {
        // `strerror_r` writes into our buffer or returns a static text; `strerror` is not thread-safe.
        var buffer = [CChar](repeating: 0, count: 128)
        let text = buffer.withUnsafeMutableBufferPointer { buffer -> String in
            guard let base = buffer.baseAddress, strerror_r(self.number, base, buffer.count) == 0 else {
                return "unknown error"
            }
            return String(cString: base)
        }
        return "\(self.call): \(text), errno \(self.number)"
    }
}
