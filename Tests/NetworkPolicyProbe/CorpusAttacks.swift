import FoundationEssentials
import TintypeDownloading

/// The cases of the probe that public collections of URLs give.
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

    /// Strings that are in use to make servers fetch what they must not.
    private func tryForgeries() async throws {
        let table = String(decoding: try Data(contentsOf: self.folder.appending(path: "ssrf.tsv")), as: UTF8.self)
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            let text = try JSONDecoder().decode(String.self, from: Data(fields[0].utf8))
            // Of the names that are looked up, one is of a kind that leads to the address in it.
            let mayGo = fields[3] == "dns-name" && !text.contains("nip.io")
            for outcome in [await Attacks.outcome(of: text), await self.attacks.redirected(to: text)] {
                let actual = mayGo ? "allowed" : Attacks.refusal(outcome)
                Attacks.report("forgery", text, expected: mayGo ? "allowed" : "refused", actual: actual)
            }
        }
    }

    /// The host that is checked is the host that is connected to, for URLs made to confuse parsers.
    ///
    /// Where a URL leads is seen at the other end: which name was looked up, else which address was
    /// connected to. Then a policy that denies just this host must stop it, and one that allows only it must not.
    private func compareHosts() async throws {
        let rows = try JSONDecoder().decode(
            [Row].self,
            from: Data(contentsOf: self.folder.appending(path: "urltestdata.json"))
        )
        // Lines end a Location.
        let inputs = Set(rows.compactMap(\.input)).filter { !$0.unicodeScalars.contains { $0 == "\n" || $0 == "\r" } }
        for input in inputs.sorted() {
            guard let host = await self.host(reachedBy: input, policy: .unrestricted) else { continue }
            await self.compare(host, with: input)
        }
    }

    private func compare(_ host: String, with input: String) async {
        // libcurl knows the addresses of localhost without asking.
        let rules = [HostRule(exactly: host), HostRule(domain: "localhost")].compactMap(\.self)
        var denying = NetworkPolicy()
        denying.deniedHosts = rules
        let reached = await self.host(reachedBy: input, policy: denying)
        Attacks.report("denied host", "\(input) is at \(host)", expected: "-", actual: reached ?? "-")
        var allowing = NetworkPolicy()
        allowing.allowedHosts = rules + [HostRule(exactly: NameServer.publicAddress)].compactMap(\.self)
        let outcome = await self.attacks.redirected(to: input, policy: allowing)
        let actual = outcome == "hostNotAllowed" ? outcome : "allowed"
        Attacks.report("allowed host", "\(input) is at \(host)", expected: "allowed", actual: actual)
    }

    /// The host that a redirect to `location` leads to, or `nil` where it leads nowhere, or back.
    private func host(reachedBy location: String, policy: NetworkPolicy) async -> String? {
        _ = self.attacks.origin.takeAddresses()
        _ = self.attacks.nameServer.takeNames()
        _ = await self.attacks.redirected(to: location, policy: policy)
        let names = self.attacks.nameServer.takeNames()
        let addresses = self.attacks.origin.takeAddresses().filter { $0 != NameServer.publicAddress }
        return names.sorted().first ?? addresses.first
    }
}
