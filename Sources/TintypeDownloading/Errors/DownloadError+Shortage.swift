// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import CTintypeShims
import Glibc
import TintypeConcurrency

// The errors of a process that lacks a resource. The origin is not at fault.

extension DownloadError {
    /// The descriptors that a connection takes at least: a pair for the look-up of the name, the socket, the file of
    /// the authorities.
    private static let neededDescriptors: CInt = 4

    /// The loop could not be started.
    static func notStarted(_ cause: LoopStartError, at address: ResourceAddress) -> DownloadError {
        switch cause {
        case .tooManyOpenFiles: .tooManyOpenFiles(at: address)
        case .outOfMemory: .outOfMemory(at: address)
        case .thread(let error): .threadRefused(error, at: address)
        }
    }

    static func shutDown(at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .shutDown,
            message: "The downloader was shut down before it was asked for \(shown(address)); use another one.",
            url: url(address)
        )
    }

    static func tooManyOpenFiles(at address: ResourceAddress, underlyingError: (any Error)? = nil) -> DownloadError {
        DownloadError(
            code: .tooManyOpenFiles,
            message: "The process has too many open files to load \(shown(address)); raise its limit (ulimit -n).",
            url: url(address),
            underlyingError: underlyingError
        )
    }

    static func threadRefused(_ error: ThreadError, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: error.code == .outOfMemory ? .outOfMemory : .tooManyThreads,
            message: error.message,
            url: url(address),
            underlyingError: error
        )
    }

    static func outOfMemory(at address: ResourceAddress, underlyingError: (any Error)? = nil) -> DownloadError {
        DownloadError(
            code: .outOfMemory,
            message: "There is no memory to load \(shown(address)); load less at once, lower the limit of bodies, "
                + "or raise the limit of memory (ulimit -v).",
            url: url(address),
            underlyingError: underlyingError
        )
    }

    /// A file could not be opened, for the reason that `errno` has given.
    static func fileNotOpened(_ path: String, code: CInt, at address: ResourceAddress) -> DownloadError {
        switch code {
        case ENOENT, ENOTDIR: .fileNotFound(path, at: address)
        case EMFILE, ENFILE: .tooManyOpenFiles(at: address)
        case ENOMEM: .outOfMemory(at: address)
        default: .fileUnreadable(path, reason: String(cString: strerror(code)), at: address)
        }
    }

    /// Returns the error for the resource that the process lacked when libcurl failed with `code`; `nil` if it lacked
    /// nothing.
    ///
    /// If the system refuses a socket, a file or a thread, libcurl reports only its purpose.
    static func shortage(
        _ code: CURLcode,
        details: String,
        socketRefusal: CInt?,
        at address: ResourceAddress
    ) -> DownloadError? {
        let cause = DownloadError.CurlError(code: code, details: details)
        switch socketRefusal {
        case EMFILE, ENFILE: return .tooManyOpenFiles(at: address, underlyingError: cause)
        case ENOBUFS, ENOMEM: return .outOfMemory(at: address, underlyingError: cause)
        default: break
        }
        switch code {
        case CURLE_OUT_OF_MEMORY where cshims_has_room(1 << 20) == 0:
            return .outOfMemory(at: address, underlyingError: cause)
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_FAILED_INIT,
            CURLE_OUT_OF_MEMORY, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE,
            CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_INITFAILED:
            // By now libcurl has closed what it had opened.
            guard cshims_has_descriptors(Self.neededDescriptors) != 0 else {
                return .tooManyOpenFiles(at: address, underlyingError: cause)
            }
            guard details.contains("thread failed to start") else { return nil }
            return .threadRefused(.unexplained(name: "for the look-up of the name"), at: address)
        default:
            return nil
        }
    }
}
