// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The cases of the probe from public collections of URLs.
struct CorpusAttacks {
    private struct Row: Decodable {
        let input: String?

        /// Strings between the rows are comments.
        init(from decoder: any Decoder) throws {
            let container = try? decoder.container(keyedBy: Key.self)
            self.input = try container?.decodeIfPresent(String.self, forKey: .input)
        }

        private enum Key: CodingKey {
            case input
        }
    }

    let attacks: Attacks
    let folder: URL

    func run() async throws {
        try await self.attacks.guarded { try await self.tryForgeries() }
        try await self.compareHosts()
    }

    /// Tries strings that attackers use to make servers fetch forbidden URLs.
    private func tryForgeries() async throws {
        let table = String(decoding: try Data(contentsOf: self.folder.appending(path: "ssrf.tsv")), as: UTF8.self)
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            let text = try JSONDecoder().decode(String.self, from: Data(fields[0].utf8))
            // Public names are allowed, except `nip.io`, whose names resolve to the addresses in them.
            let mayGo = fields[3] == "dns-name" && !text.contains("nip.io")
            for outcome in [await Attacks.outcome(of: text), await self.attacks.redirected(to: text)] {
                let actual = mayGo ? "allowed" : Attacks.refusal(outcome)
                Attacks.report("forgery", text, expected: mayGo ? "allowed" : "refused", actual: actual)
            }
        }
    }

    /// Compares hosts for URLs that confuse parsers.
    private func compareHosts() async throws {
        let rows = try JSONDecoder().decode(
            [Row].self,
            from: Data(contentsOf: self.folder.appending(path: "urltestdata.json"))
        )
        let comparison = HostComparison(attacks: self.attacks)
        for input in Set(rows.compactMap(\.input)).sorted() { await comparison.run(input) }
    }
}
