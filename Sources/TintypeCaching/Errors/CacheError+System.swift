import Glibc
import TintypeConcurrency

extension CacheError {
    /// The thread of a lane was refused.
    static func threadRefused(_ error: ThreadError) -> CacheError {
        CacheError(code: error.code == .outOfMemory ? .outOfMemory : .tooManyThreads, message: error.message)
    }

    /// The error of a store, a removal or the making of a folder that failed in `directory`.
    static func writing(_ error: SystemCallError, in directory: String) -> CacheError {
        let (code, message): (Code, String) =
            switch error.number {
            case ENOSPC:
                (
                    .noSpace,
                    "The disk of the cache folder \(directory) is full; free some space or lower the size limit."
                )
            case EDQUOT:
                (
                    .noSpace,
                    "The disk quota for the cache folder \(directory) is used up; raise it or lower the size limit."
                )
            case EACCES, EPERM:
                (
                    .notWritable,
                    "The cache folder \(directory) is not writable by this user; change its permissions or choose another."
                )
            case EROFS:
                (
                    .notWritable,
                    "The cache folder \(directory) is on a read-only file system; choose a folder that can be written."
                )
            case EEXIST where error.call == "rename":
                (
                    .notWritable,
                    "Something that no cache has written is in the place of an entry in \(directory); move it away."
                )
            case ENOTDIR, EEXIST, EISDIR, ELOOP:
                (
                    .notWritable,
                    "The cache folder \(directory) can't be made because something else is in its place; choose another."
                )
            case ENAMETOOLONG, ENOENT:
                (.notWritable, "The cache folder \(directory) can't be made; check its path or choose another.")
            default:
                self.general(error, in: directory)
            }
        return CacheError(code: code, message: message, underlyingError: error)
    }

    /// The error of a read that failed in `directory`.
    static func reading(_ error: SystemCallError, in directory: String) -> CacheError {
        let (code, message): (Code, String) =
            switch error.number {
            case EACCES, EPERM:
                (
                    .notReadable,
                    "An entry of the cache folder \(directory) is not readable by this user; change the permissions."
                )
            default:
                self.general(error, in: directory)
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
            code: .noSpace,
            message:
                "No room could be made within the size limit of the cache folder \(directory); raise the limit or check who else uses the folder."
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
        switch error.number {
        case ETIMEDOUT where error == .lockTimedOut:
            (
                .lockTimedOut,
                "Another process keeps the lock of the cache folder \(directory); see whether it was stopped (\(directory)/lock)."
            )
        case EMFILE:
            (
                .tooManyOpenFiles,
                "The process has too many open files to use the cache folder \(directory); raise its limit (ulimit -n)."
            )
        case ENFILE:
            (
                .tooManyOpenFiles,
                "The system has too many open files to use the cache folder \(directory); raise fs.file-max."
            )
        case ENOMEM:
            (.outOfMemory, "There is no memory to use an entry of the cache folder \(directory); lower the limits.")
        case EIO:
            (.diskFault, "The disk of the cache folder \(directory) failed; check it, or choose another folder.")
        default:
            (.unexpected, "The cache folder \(directory) can't be used: \(error). Check it, or choose another folder.")
        }
    }
}
