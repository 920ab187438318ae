// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Tintype

@Suite struct AlternativeLoadTests {
    private let request: ImageRequest

    init() {
        var request = Self.request("/a")
        request.alternatives = ["/b", "/c"].map { Self.request($0) }
        self.request = request
    }

    private static func request(_ path: String) -> ImageRequest { ImageRequest(url: URL(filePath: path)) }

    /// Loads a request whose source at `path` succeeds and whose other sources fail with `error`.
    private func load(
        _ request: ImageRequest,
        succeedingAt path: String?,
        else error: any Error
    ) async throws -> (loaded: [String], outcome: Result<(value: String, alternative: Int?), any Error>) {
        var loaded: [String] = []
        do {
            let value = try await AlternativeLoad.first(of: request) { source, isFirst in
                #expect(isFirst == loaded.isEmpty)
                loaded.append(source.url.path)
                guard source.url.path == path else { throw error }
                return source.url.path
            }
            return (loaded, .success(value))
        } catch {
            return (loaded, .failure(error))
        }
    }

    private let missing = LoadError(code: .notInCache, message: "It is not there.")

    @Test(arguments: [("/a", nil), ("/b", 0), ("/c", 1)] as [(String, Int?)])
    func `the first source that succeeds gives the value`(path: String, alternative: Int?) async throws {
        let (loaded, outcome) = try await self.load(self.request, succeedingAt: path, else: self.missing)
        #expect(try outcome.get().value == path)
        #expect(try outcome.get().alternative == alternative)
        #expect(loaded.count == (alternative.map { $0 + 2 } ?? 1))
    }

    @Test func `an error of all sources tells each attempt`() async throws {
        let (loaded, outcome) = try await self.load(self.request, succeedingAt: nil, else: self.missing)
        #expect(loaded == ["/a", "/b", "/c"])
        let error = try #require(throws: LoadError.self) { try outcome.get() }
        #expect(error.code == .notInCache && error.attempts.count == 3)
        #expect(error.message.hasPrefix("All 3 sources failed."))
    }

    @Test func `a note on remembered failures is told once`() async throws {
        let remembered = LoadError(code: .notInCache, message: "It is not there." + FailureMemory.note)
        let (_, outcome) = try await self.load(self.request, succeedingAt: nil, else: remembered)
        let error = try #require(throws: LoadError.self) { try outcome.get() }
        #expect(error.message.ranges(of: FailureMemory.note).count == 1)
    }

    @Test(arguments: [LoadError.notModified(ImageRequest(url: URL(filePath: "/a")), [:]), .shutDown])
    func `no alternative is tried if the copy is current or the loader has been shut down`(
        error: LoadError
    ) async throws {
        let (loaded, outcome) = try await self.load(self.request, succeedingAt: "/b", else: error)
        #expect(loaded == ["/a"])
        #expect(try #require(throws: LoadError.self) { try outcome.get() }.code == error.code)
    }

    @Test func `a cancellation and an error without alternatives pass as they are`() async throws {
        let cancelled = try await self.load(self.request, succeedingAt: "/b", else: CancellationError())
        #expect(cancelled.loaded == ["/a"])
        #expect(throws: CancellationError.self) { try cancelled.outcome.get() }
        let alone = try await self.load(Self.request("/a"), succeedingAt: nil, else: self.missing)
        #expect(try #require(throws: LoadError.self) { try alone.outcome.get() }.attempts.isEmpty)
    }

    @Test func `a fallback stands for a failure, and not for a copy that is current`() throws {
        var request = self.request
        #expect(throws: LoadError.self) { try AlternativeLoad.fallback(of: request, after: self.missing) }
        let image = try makeGray(1)
        request.fallback = image
        #expect(try AlternativeLoad.fallback(of: request, after: self.missing).pixels === image.pixels)
        let current = LoadError.notModified(request, [:])
        #expect(throws: LoadError.self) { try AlternativeLoad.fallback(of: request, after: current) }
    }
}
