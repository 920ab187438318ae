// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeTestSupport

/// A program that tries to bypass a network policy, on a network where every address really answers.
///
/// It first creates a network and a mount namespace for itself. With the folder of a URL corpus it tries those URLs,
/// and otherwise its own. Each printed line is a case: the group, the name, the expected outcome and the actual one.
@main
struct NetworkPolicyProbe {
    static func main() async {
        do {
            try await self.run()
        } catch {
            print("The probe cannot run: \(error)")
            exit(1)
        }
    }

    private static func run() async throws {
        // libcurl converts names that are not ASCII in such a locale only, as in programs that set one.
        guard setlocale(LC_ALL, "C.UTF-8") != nil else { throw TestSupportError("There is no locale C.UTF-8.") }
        let network = try IsolatedNetwork()
        let origin = try EveryAddressOrigin()
        let nameServer = try NameServer(address: IsolatedNetwork.nameServerAddress)
        defer { _ = network }
        let corpus = CommandLine.arguments.dropFirst().first.map { URL(filePath: $0) }
        let attacks = Attacks(origin: origin, nameServer: nameServer)
        if let corpus {
            try await CorpusAttacks(attacks: attacks, folder: corpus).run()
        } else {
            await attacks.run()
            await LookUps(origin: origin, nameServer: nameServer).run()
        }
        print("end\tprobe\tcomplete\tcomplete")
    }
}
