// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCaching
import TintypeCoding
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeRequests

/// The memory of failures without a loader.
@Suite(.computing, .timeLimit(.minutes(5))) struct FailureMemoryTests {
    @Test func `a million dead URLs take no more room than the limit`() {
        let memory = FailureMemory(FailureLifetimes(countLimit: 1_000)) { Date(timeIntervalSince1970: 0) }
        let error = CodingError(code: .notAnImage, message: "no image")
        for number in 0..<1_000_000 {
            memory.remember(error, of: CacheKey("https://example.org/\(number)"), for: .seconds(1))
        }
        #expect(memory.count <= 1_000)
        #expect(memory.failure(of: CacheKey("https://example.org/999999")) != nil)
        #expect(memory.failure(of: CacheKey("https://example.org/1")) == nil)
        let long = String(repeating: "a", count: 100_000)
        for number in 0..<100 { memory.remember(error, of: CacheKey("\(long)\(number)"), for: .seconds(1)) }
        #expect(memory.count <= 10)
    }

    @Test func `the memory drops expired failures even if their URLs are not requested again`() {
        let clock = TestClock()
        let memory = FailureMemory(FailureLifetimes()) { clock.now }
        let error = CodingError(code: .notAnImage, message: "not an image")
        for number in 0..<9_000 {
            memory.remember(error, of: CacheKey("a\(number)"), for: .seconds(30))
            clock.advance(by: 1)
        }
        #expect(memory.failure(of: CacheKey("a8999")) != nil)
        #expect(memory.count <= 256)
        #expect(memory.placeCount <= 2_048)
    }

    @Test func `the weight of a failure includes its URL and message, even if its key is short`() throws {
        let memory = FailureMemory(FailureLifetimes(countLimit: 100)) { Date(timeIntervalSince1970: 0) }
        let long = try #require(URL(string: "https://example.org/\(String(repeating: "a", count: 50_000))"))
        for number in 0..<100 {
            let error = DownloadError(code: .badStatus, message: "\(long)", url: long, status: 404)
            memory.remember(error, of: CacheKey("|key(\(number))"), for: .seconds(1))
        }
        #expect(memory.count == 1)
        memory.forgetAll()
        for number in 0..<100 {
            let error = DownloadError(code: .badStatus, message: "It is gone.", url: nil, status: 404)
            memory.remember(error, of: CacheKey("|key(\(number))"), for: .seconds(1))
        }
        #expect(memory.count == 100)
    }

    @Test func `a failure that is remembered again takes its new place`() {
        let memory = FailureMemory(FailureLifetimes(countLimit: 3)) { Date(timeIntervalSince1970: 0) }
        let error = CodingError(code: .notAnImage, message: "no image")
        for name in ["a", "b", "a", "c", "d"] { memory.remember(error, of: CacheKey(name), for: .seconds(1)) }
        #expect(["a", "b", "c", "d"].filter { memory.failure(of: CacheKey($0)) != nil } == ["a", "c", "d"])
        for _ in 0..<10_000 { memory.remember(error, of: CacheKey("d"), for: .seconds(1)) }
        #expect(memory.placeCount < 2_000)
        memory.forget(CacheKey("a"))
        #expect(memory.count == 2)
        memory.forgetAll()
        #expect(memory.count == 0)
    }

    @Test(arguments: [true, false])
    func `a failure is remembered if the program permits it, and passed by a load that tries again`(
        isPermitted: Bool
    ) async throws {
        let memory = FailureMemory(FailureLifetimes()) { Date(timeIntervalSince1970: 0) }
        let request = ImageRequest(url: try #require(URL(string: "https://example.org/a")))
        let error = CodingError(code: .notAnImage, message: "no image")
        await memory.remember(error, of: request.key, for: request) { reported in
            #expect(reported.code == .notAnImage)
            return isPermitted
        }
        func isRemembered(_ retriesFailed: Bool, _ policy: CachePolicy) -> Bool {
            memory.failure(of: request.key, for: request, retriesFailed: retriesFailed, under: policy) != nil
        }
        #expect(isRemembered(false, .neverRevalidate) == isPermitted)
        #expect(!isRemembered(true, .neverRevalidate))
        #expect(!isRemembered(false, .reload))
    }
}
