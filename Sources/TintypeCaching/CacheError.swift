// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency
@_exported public import TintypeErrors

/// An error of a cache.
///
/// A missing, expired or damaged entry is a miss, never an error.
public struct CacheError: TintypeError {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// The kind of failure.
    public let code: Code
    /// The cause and the remedy, in full sentences.
    public let message: String
    /// The system call that failed, if one did.
    public let underlyingError: SystemCallError?

    /// Creates an error.
    ///
    /// ```swift
    /// throw CacheError(code: .tierFailed, message: "The archive is closed; open it before the first load.")
    /// ```
    public init(code: Code, message: String, underlyingError: SystemCallError? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
    }

    public var description: String {
        guard let underlyingError = self.underlyingError else { return "\(self.code): \(self.message)" }
        return "\(self.code): \(self.message) (\(underlyingError))"
    }

    /// Returns the error for a lane whose thread could not be started.
    static func threadRefused(_ error: ThreadError) -> CacheError {
        CacheError(code: error.code, message: error.message)
    }

    /// Returns the error for a store, a removal or the creation of a folder that failed in `directory`.
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
                    "The \(folder) cannot be made because something else is in its place; choose another."
                )
            case ENAMETOOLONG, ENOENT:
                (.cacheNotWritable, "The \(folder) cannot be made; check its path or choose another.")
            default: self.general(error, in: directory)
            }
        return CacheError(code: code, message: message, underlyingError: error)
    }

    /// Returns the error for a read that failed in `directory`.
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

    /// Returns the error for a file of the cache that cannot be deleted.
    static func removing(_ error: SystemCallError, of path: String) -> CacheError {
        CacheError(
            code: .notRemovable,
            message:
                "\(path) of the cache cannot be deleted and goes on counting; check its permissions and attributes.",
            underlyingError: error
        )
    }

    /// Returns the error for a catalogue of `directory` that cannot be shared.
    static func catalogue(_ error: SystemCallError, in directory: String) -> CacheError {
        let reason =
            error.number == EEXIST
            ? "a file or folder of that name was not made by the cache; move it away"
            : "check the permissions and the space of the disk"
        return CacheError(
            code: .catalogueUnusable,
            message: "The cache folder \(directory) cannot have a catalogue: \(reason).",
            underlyingError: error
        )
    }

    /// Returns the error for a cache whose entries in `directory` users other than this one and root may change.
    static func exposed(to strangers: String, in directory: String) -> CacheError {
        CacheError(
            code: .cacheNotPrivate,
            message:
                "\(strangers) may change the cache folder \(directory), and so the images that are served from it; make it this user's own (chown, chmod 700) or choose another."
        )
    }

    /// Returns the error for an entry of `byteCount` bytes that does not fit into a cache of `limit` bytes.
    static func tooLarge(_ byteCount: Int, limit: Int, in directory: String) -> CacheError {
        CacheError(
            code: .entryTooLarge,
            message:
                "An entry of \(byteCount) bytes is over the limit of \(limit) bytes of the cache folder \(directory); raise it."
        )
    }

    /// Returns the error for a store that found no room within the size limit because other processes used all of it.
    static func noRoom(in directory: String) -> CacheError {
        CacheError(
            code: .diskFull,
            message:
                "No room could be made within the size limit of the cache folder \(directory); raise the limit or check what else uses the folder."
        )
    }

    /// Returns the error for a use of the cache of `directory` after its shutdown.
    static func shutDown(_ directory: String) -> CacheError {
        CacheError(
            code: .shutDown,
            message: "The cache of the folder \(directory) was shut down; use it before that, or make a new one."
        )
    }

    /// Returns the error for a background store that was refused because `byteCount` bytes already wait to be stored.
    static func tooManyPending(_ byteCount: Int, in directory: String) -> CacheError {
        CacheError(
            code: .tooManyPendingStores,
            message:
                "The disk of the cache folder \(directory) is too slow: \(byteCount) bytes wait to be stored. Choose a faster disk."
        )
    }

    /// Returns the error for a call to the byte tier `name` that threw `error`.
    static func tier(_ name: String, _ error: any Error) -> CacheError {
        if let error = error as? CacheError { return error }
        return CacheError(code: .tierFailed, message: "The cache tier \(name) failed: \(error). Check its service.")
    }

    /// Returns the error for a call to the byte tier `name` that took longer than its budget.
    static func tierTimedOut(_ name: String, _ budget: Duration) -> CacheError {
        CacheError(
            code: .tierTimedOut,
            message:
                "The cache tier \(name) did not answer within \(budget); check its service or raise the time budget."
        )
    }

    /// Returns the error for a read from the byte tier `name`, which has too many calls under way.
    static func tierBusy(_ name: String) -> CacheError {
        CacheError(
            code: .tierTimedOut,
            message: "The cache tier \(name) has not ended earlier calls yet; check its service."
        )
    }

    /// Returns the error for an entry of `byteCount` bytes that no byte tier accepts.
    static func noTierAccepts(_ byteCount: Int) -> CacheError {
        CacheError(
            code: .entryTooLarge,
            message:
                "No byte tier of the cache accepts an entry of \(byteCount) bytes under this key; add one that does."
        )
    }

    /// Returns the error for a change in the byte tier `name` that was refused: `byteCount` bytes already wait.
    static func tooManyPending(_ byteCount: Int, inTier name: String) -> CacheError {
        CacheError(
            code: .tooManyPendingStores,
            message:
                "The cache tier \(name) is too slow: \(byteCount) bytes wait to be stored. Choose a faster service."
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
        default: (.unexpected, "The \(folder) cannot be used: \(error). Check it, or choose another folder.")
        }
    }
}

extension TintypeErrorCode {
    /// The disk is full, or the user's quota is used up (`ENOSPC`, `EDQUOT`).
    public static let diskFull = TintypeErrorCode("diskFull", .internalFailure)
    /// The folder is not writable (`EACCES`, `EPERM`, `EROFS`, `ENOTDIR` and similar errors).
    public static let cacheNotWritable = TintypeErrorCode("cacheNotWritable", .internalFailure)
    /// An entry or the folder is not readable (`EACCES`, `EPERM`).
    public static let notReadable = TintypeErrorCode("notReadable", .internalFailure)
    /// An entry is larger than the whole size limit.
    public static let entryTooLarge = TintypeErrorCode("entryTooLarge", .internalFailure)
    /// The disk is so slow that the pending stores have reached their limit.
    public static let tooManyPendingStores = TintypeErrorCode("tooManyPendingStores", .busy)
    /// A byte tier that is not a disk of this library failed; the underlying error is in the message.
    public static let tierFailed = TintypeErrorCode("tierFailed", .internalFailure)
    /// A byte tier did not answer within the time budget of the cache.
    public static let tierTimedOut = TintypeErrorCode("tierTimedOut", .busy)
    /// The disk failed to read or write (`EIO`).
    public static let diskFault = TintypeErrorCode("diskFault", .internalFailure)
    /// Another process held the folder's lock for too long; it may have been stopped.
    public static let lockTimedOut = TintypeErrorCode("lockTimedOut", .busy)
    /// A file of the cache cannot be deleted; its bytes still count towards the limit.
    public static let notRemovable = TintypeErrorCode("notRemovable", .internalFailure)
    /// The catalogue of the folder cannot be shared; each process knows only its own changes.
    public static let catalogueUnusable = TintypeErrorCode("catalogueUnusable", .internalFailure)
    /// Another user can change the folder and so the images that the cache serves; the cache uses the folder anyway.
    public static let cacheNotPrivate = TintypeErrorCode("cacheNotPrivate", .internalFailure)
}

/// A system call that failed.
public struct SystemCallError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the call, such as `open`.
    public let call: String
    /// The value of `errno`.
    public let number: Int32

    /// Creates an error.
    ///
    /// ```swift
    /// let error = SystemCallError(call: "open", number: ENOENT)
    /// ```
    public init(call: String, number: Int32) {
        self.call = call
        self.number = number
    }

    /// Returns the error of the call that just failed on this thread.
    static func last(_ call: String) -> SystemCallError {
        SystemCallError(call: call, number: errno)
    }

    /// Whether the file system, or the user's quota, has no inode left for another file.
    var meansNoInode: Bool {
        (self.number == ENOSPC || self.number == EDQUOT) && (self.call == "open" || self.call == "mkdir")
    }

    /// Whether the path does not exist.
    var meansMissing: Bool { self.number == ENOENT || self.number == ENOTDIR }

    public var description: String {
        // `strerror_r` writes into our buffer; `strerror` is not thread-safe.
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
