import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeDownloading

extension DownloadActor {
    /// A downloader that gives up late: on a starved machine an origin may be silent for longer than the default.
    static func patient(hooks: DownloadHooks = DownloadHooks()) -> DownloadActor {
        var configuration = Configuration()
        configuration.timeout = .seconds(60)
        return DownloadActor(configuration: configuration, hooks: hooks)
    }

    /// The body at a URL.
    nonisolated func body(at url: URL) async throws -> Data {
        try await self.response(for: DownloadRequest(url: url)).body
    }

    /// The error that a request must end with.
    nonisolated func error(
        for request: DownloadRequest,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> DownloadError {
        let error = await #expect(throws: DownloadError.self, sourceLocation: sourceLocation) {
            try await self.response(for: request)
        }
        return try #require(error, sourceLocation: sourceLocation)
    }

    /// The error that a URL must end with.
    nonisolated func error(
        at url: URL,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> DownloadError {
        try await self.error(for: DownloadRequest(url: url), sourceLocation: sourceLocation)
    }
}

extension Result {
    /// Whether the result is that of a cancelled task.
    var isCancellation: Bool {
        if case .failure(let error) = self { error is CancellationError } else { false }
    }
}

/// Keeps what an observer was shown.
final class Recorder<Element: Sendable>: Sendable {
    private let state = Locked([Element]())

    var elements: [Element] { self.state.withLock { $0 } }

    func record(_ element: Element) {
        self.state.withLock { $0.append(element) }
    }
}

/// Bytes that do not repeat soon, so that a lost or doubled piece shows.
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
