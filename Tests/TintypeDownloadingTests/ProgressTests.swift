// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct ProgressTests {
    private let downloader = DownloadActor.patient()

    @Test func `progress of a known length rises to the whole`() async throws {
        let content = pattern(1_000_000)
        let origin = try NginxOrigin(files: ["a": content])
        let progress = Recorder<TransferProgress>()
        _ = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a"))) { progress.record($0) }
        let received = progress.elements.map(\.receivedBytes)
        #expect(received == received.sorted())
        #expect(received.count > 1)
        #expect(progress.elements.allSatisfy { $0.expectedBytes == 1_000_000 })
        #expect(progress.elements.last?.fractionCompleted == 1)
    }

    @Test func `progress of an unknown length counts bytes`() async throws {
        let origin = try FaultyOrigin(["/a": .chunked([Array(pattern(100)), Array(pattern(200))])])
        let progress = Recorder<TransferProgress>()
        _ = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a"))) { progress.record($0) }
        #expect(progress.elements.last == TransferProgress(receivedBytes: 300, expectedBytes: nil))
        #expect(progress.elements.last?.fractionCompleted == nil)
    }

    @Test func `a caller that joins is shown what has arrived`() async throws {
        let door = Latch()
        let origin = try FaultyOrigin([
            "/a": FaultyResponse([
                FaultyResponse.head(200, [("Content-Length", "4")]), .send([1, 2]), .wait(door), .send([3, 4]),
            ])
        ])
        let request = DownloadRequest(url: origin.url("/a"))
        let downloader = self.downloader
        let hasHalf = Gate()
        let first = Task {
            try await downloader.response(for: request) { progress in
                if progress.receivedBytes == 2 { Task { await hasHalf.open() } }
            }
        }
        await hasHalf.wait()
        let progress = Recorder<TransferProgress>()
        let joined = Gate()
        let second = Task {
            try await downloader.response(for: request) { value in
                progress.record(value)
                Task { await joined.open() }
            }
        }
        await joined.wait()
        #expect(progress.elements == [TransferProgress(receivedBytes: 2, expectedBytes: 4)])
        door.open()
        _ = try await (first.value, second.value)
        #expect(progress.elements.last == TransferProgress(receivedBytes: 4, expectedBytes: 4))
    }

    @Test(arguments: [(5, 10, 0.5), (0, 10, 0), (20, 10, 1)] as [(Int64, Int64, Double)])
    func `the fraction is from 0 to 1`(received: Int64, expected: Int64, fraction: Double) {
        let progress = TransferProgress(receivedBytes: received, expectedBytes: expected)
        #expect(progress.fractionCompleted == fraction)
    }

    @Test func `there is no fraction of nothing`() {
        #expect(TransferProgress(receivedBytes: 0, expectedBytes: 0).fractionCompleted == nil)
        #expect(TransferProgress(receivedBytes: 0, expectedBytes: nil).fractionCompleted == nil)
    }
}
