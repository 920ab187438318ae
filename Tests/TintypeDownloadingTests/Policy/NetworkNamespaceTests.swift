// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

/// The policy on a network whose private and link-local addresses really answer.
///
/// The program `NetworkPolicyProbe` has the cases. It runs in a network namespace in which every IPv4 and IPv6 address
/// belongs to this machine, and a web server listens on all of them.
@Suite(
    .waiting,
    .timeLimit(.minutes(5)),
    .enabled(if: NetworkNamespace.isPossible, "This process may not make network namespaces, which root may.")
)
struct NetworkNamespaceTests {
    private struct Case {
        let group: String
        let name: String
        let expected: String
        let actual: String

        init?(_ line: Substring) {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard fields.count == 4 else { return nil }
            (self.group, self.name, self.expected, self.actual) = (fields[0], fields[1], fields[2], fields[3])
        }
    }

    @Test func `nothing gets past the policy`() async throws {
        let counts = try await Self.counts(arguments: [])
        #expect(counts["control", default: 0] >= 30)
        #expect(counts["public", default: 0] >= 5)
        #expect(counts["literal", default: 0] >= 28)
        #expect(counts["direct", default: 0] + counts["redirect", default: 0] >= 300)
        #expect(counts["name", default: 0] >= 27)
        #expect(counts["name by redirect", default: 0] >= 27)
        #expect(counts["rebinding", default: 0] + counts["rebinding by redirect", default: 0] >= 12)
        #expect(counts["several addresses", default: 0] >= 6)
        #expect(counts["denied host", default: 0] >= 150)
        #expect(counts["look-ups"] == 5)
        #expect(counts["reached"] == 1)
    }

    @Test(.enabled(if: Fixtures.corpus != nil, "There is no corpus beside this package."))
    func `no string of the corpora gets past the policy`() async throws {
        let corpus = try #require(Fixtures.corpus)
        let counts = try await Self.counts(arguments: [corpus.appending(path: "urls").path])
        #expect(counts["forgery", default: 0] >= 150)
        #expect(counts["denied host", default: 0] >= 80)
        #expect(counts["allowed host", default: 0] >= 80)
        #expect(counts["reached"] == 1)
    }

    /// Runs the probe, checks every case, and returns the number of cases in each group.
    private static func counts(arguments: [String]) async throws -> [String: Int] {
        let output = try await NetworkNamespace.run("NetworkPolicyProbe", arguments)
        let lines = output.split(separator: "\n")
        let cases = lines.compactMap(Case.init)
        #expect(cases.count == lines.count, "\(output.suffix(2000))")
        #expect(cases.last?.group == "end")
        for one in cases { #expect(one.actual == one.expected, "\(one.group): \(one.name)") }
        return Dictionary(cases.map { ($0.group, 1) }, uniquingKeysWith: +)
    }
}
