// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The public suite of tests for HTTP caches (http-tests/cache-tests), run against a loader.
///
/// A loader is a private cache, or a shared one if its configuration says so. A test counts for the kind of cache
/// that upstream runs it with. Time passes on the test's own clock.
@Suite(.waiting, .timeLimit(.minutes(5))) struct HTTPCacheSuiteTests {
    private struct Result: Sendable {
        let test: CacheTest
        let isShared: Bool
        let outcome: CacheTestRun.Outcome
    }

    @Test(.enabled(if: Fixtures.corpus != nil, "the corpus is not on this machine"))
    func `required tests pass`() async throws {
        let tests = try #require(try CacheTest.all())
        let runnable = tests.filter { $0.obstacle == nil }
        let runs = runnable.flatMap { test in
            [false, true].filter { $0 ? !test.isForPrivateCaches : !test.isForSharedCaches }.map { isShared in
                CacheTestRun(test: test, isShared: isShared)
            }
        }
        let results = try await Self.results(of: runs)
        for kind in CacheTest.Kind.allCases {
            for isShared in [false, true] {
                self.report(results.filter { $0.test.kind == kind && $0.isShared == isShared }, kind, isShared)
            }
        }
        for (reason, skipped) in Dictionary(grouping: tests, by: \.obstacle) where reason != nil {
            print("http-cache: not run, \(reason ?? ""): \(skipped.count)")
        }
    }

    private func report(_ results: [Result], _ kind: CacheTest.Kind, _ isShared: Bool) {
        var passed = 0
        for result in results {
            let name = "\(result.test.suite)/\(result.test.id)"
            switch result.outcome {
            case .passed: passed += 1
            case .failed(let message):
                print("http-cache: \(kind) \(isShared ? "shared" : "private") failed: \(name): \(message)")
                if kind == .required { Issue.record("\(name): \(message)") }
            case .void(let message):
                print("http-cache: \(kind) \(isShared ? "shared" : "private") void: \(name): \(message)")
                // A required test that cannot run counts as failed.
                if kind == .required { Issue.record("\(name): \(message)") }
            }
        }
        print("http-cache: \(isShared ? "shared" : "private") \(kind): \(passed) of \(results.count) passed")
    }

    private static func results(of runs: [CacheTestRun]) async throws -> [Result] {
        try await withThrowingTaskGroup(of: Result.self) { group in
            var results: [Result] = []
            for (index, run) in runs.enumerated() {
                if index >= 8, let result = try await group.next() { results.append(result) }
                group.addTask {
                    Result(test: run.test, isShared: run.isShared, outcome: try await run.run())
                }
            }
            for try await result in group { results.append(result) }
            return results.sorted { ($0.test.suite, $0.test.id) < ($1.test.suite, $1.test.id) }
        }
    }
}
