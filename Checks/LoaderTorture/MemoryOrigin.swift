// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Tintype
import TintypeConcurrency
import TintypeTestSupport

/// Serves the images from memory.
///
/// Some responses are slow, some come in pieces, some change, and some never come.
///
/// It lends each body as separate memory, and counts how much of it is still in use.
final class MemoryOrigin: ImageFetching {
    private struct State {
        var random: SeededGenerator
        var requestCounts = [Int](repeating: 0, count: Images.count)
    }

    private let images: Images
    private let state: Locked<State>
    let heldBytes = HeldBytes()

    init(_ images: Images, seed: UInt64) {
        self.images = images
        self.state = Locked(State(random: SeededGenerator(seed: seed)))
    }

    static func url(_ number: Int) -> URL {
        URL(string: "https://origin.example/\(number)") ?? URL(filePath: "/")
    }

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        guard let number = Int(request.url.lastPathComponent) else {
            throw DownloadError(code: .invalidURL, message: "No image has this URL.", url: request.url)
        }
        let (turn, delay, lifetime) = self.state.withLock { state in
            state.requestCounts[number] += 1
            let lifetime = [
                "max-age=0", "max-age=1", "max-age=600", "max-age=0, stale-while-revalidate=600", "no-store",
            ]
            return (
                state.requestCounts[number], Int.random(in: 0..<40, using: &state.random),
                lifetime.randomElement(using: &state.random) ?? ""
            )
        }
        _ = observer.priority()
        if delay < 20 { try await Task.sleep(for: .milliseconds(delay)) }
        for _ in 20..<max(20, delay) { await Task.yield() }
        try Task.checkCancellation()

        // Every fifth image changes with every third request.
        let version = number.isMultiple(of: 5) ? turn / 3 % 2 : 0
        let tag = "\"\(number)-\(version)\""
        var headers: HeaderFields = ["ETag": tag, "Cache-Control": lifetime]
        if number.isMultiple(of: 3) { headers["Vary"] = "Accept-Language" }
        switch Images.conduct(of: number) {
        case .missing: return self.answer(Data("none".utf8), request, 404, headers)
        case .broken: throw DownloadError(code: .connectionLost, message: "The line is cut.", url: request.url)
        case .page: return self.answer(Images.page(number), request, 200, [:])
        case .flaky where turn.isMultiple(of: 2): return self.answer(Data("busy".utf8), request, 503, headers)
        case .healthy, .truncated, .flaky: break
        }
        if request.headers["If-None-Match"] == tag, request.acceptableStatusCodes?.contains(304) ?? false {
            return DownloadResponse(body: Data(), url: request.url, status: 304, headers: headers)
        }
        var body = self.images.body(number, version: version)
        if Images.conduct(of: number) == .truncated { body = Images.truncated(body) }
        try await self.show(body, to: observer)
        return self.answer(body, request, 200, headers)
    }

    private func show(_ body: Data, to observer: FetchObserver) async throws {
        let size = max(1, body.count / 3)
        for start in stride(from: 0, to: body.count, by: size) {
            let end = min(start + size, body.count)
            observer.didProgress(TransferProgress(receivedBytes: Int64(end), expectedBytes: Int64(body.count)))
            observer.didReceive?(self.heldBytes.lend(body[start..<end]))
            await Task.yield()
            try Task.checkCancellation()
        }
    }

    private func answer(
        _ body: Data,
        _ request: DownloadRequest,
        _ status: Int,
        _ headers: HeaderFields
    ) -> DownloadResponse {
        DownloadResponse(body: self.heldBytes.lend(body), url: request.url, status: status, headers: headers)
    }
}

/// Counts the bytes of bodies that are held.
final class HeldBytes: Sendable {
    private let total = Atomic<Int>(0)

    var count: Int { self.total.load(ordering: .acquiring) }

    /// A copy that is counted until the last reference to it goes.
    func lend(_ bytes: Data) -> Data {
        guard !bytes.isEmpty else { return Data() }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        bytes.copyBytes(to: copy)
        guard let start = copy.baseAddress else { return Data() }
        self.total.wrappingAdd(copy.count, ordering: .acquiringAndReleasing)
        return Data(
            bytesNoCopy: start,
            count: copy.count,
            deallocator: .custom { [self] start, count in
                start.deallocate()
                self.total.wrappingSubtract(count, ordering: .acquiringAndReleasing)
            }
        )
    }
}
