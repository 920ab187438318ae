import Glibc
import TintypeConcurrency

/// Why the loop of a downloader can't be started now.
enum LoopStartError: Error {
    /// The process or the system has no file descriptor left.
    case tooManyOpenFiles
    /// The system, or libcurl, has no memory.
    case outOfMemory
    /// The system refuses the thread.
    case thread(ThreadError)

    /// What the refusal of a descriptor with this `errno` means.
    init(refused code: CInt) {
        self = code == EMFILE || code == ENFILE ? .tooManyOpenFiles : .outOfMemory
    }
}
