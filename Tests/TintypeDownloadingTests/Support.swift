// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeDownloading

extension DownloadActor {
    /// Returns a downloader with long time limits, because an origin on a busy machine may be silent for long.
    static func patient(hooks: DownloadHooks = DownloadHooks()) -> DownloadActor {
        var configuration = Configuration()
        configuration.timeout = .seconds(60)
        configuration.firstByteTimeout = nil
        configuration.minimumSpeed = nil
        return DownloadActor(configuration: configuration, hooks: hooks)
    }

    /// Returns the body at a URL.
    nonisolated func body(at url: URL) async throws -> Data {
        try await self.response(for: DownloadRequest(url: url)).body
    }

    /// Returns the error that a request must fail with.
    nonisolated func error(
        for request: DownloadRequest,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> DownloadError {
        let error = await #expect(throws: DownloadError.self, sourceLocation: sourceLocation) {
            try await self.response(for: request)
        }
        return try #require(error, sourceLocation: sourceLocation)
    }

    /// Returns the error that a request for a URL must fail with.
    nonisolated func error(
        at url: URL,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> DownloadError {
        try await self.error(for: DownloadRequest(url: url), sourceLocation: sourceLocation)
    }
}

extension Result {
    /// Whether the task was cancelled.
    var isCancellation: Bool {
        if case .failure(let error) = self { error is CancellationError } else { false }
    }
}

/// Records the values that an observer receives.
final class Recorder<Element: Sendable>: Sendable {
    private let state = Locked([Element]())

    var elements: [Element] { self.state.withLock { $0 } }

    func record(_ element: Element) {
        self.state.withLock { $0.append(element) }
    }
}

/// Returns bytes that do not repeat soon, so that a lost or doubled piece is noticed.
func pattern(_ count: Int) -> Data {
    var bytes = Data(count: count)
    bytes.withUnsafeMutableBytes { bytes in
        for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: index &* 31 ^ index >> 8) }
    }
    return bytes
}

func url(_ text: String) throws -> URL {
    try #require(URL(string: text))
}
