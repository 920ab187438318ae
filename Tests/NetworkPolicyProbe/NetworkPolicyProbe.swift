import FoundationEssentials
import Glibc

/// Tries to get past a network policy on a network where every address really answers.
///
/// It makes a network and a mount namespace for itself first. With the folder of a corpus of URLs, it tries
/// those, and else its own. Each line that it prints is a case: the group, the name, what must happen and what did.
@main
struct NetworkPolicyProbe {
    static func main() async {
        do {
            try await self.run()
        } catch {
            print("The probe can't run: \(error)")
            exit(1)
        }
    }

    private static func run() async throws {
        // Only in such a locale does libcurl convert names that are not ASCII, as in programs that set one.
        guard setlocale(LC_ALL, "C.UTF-8") != nil else { throw ProbeError("There is no locale C.UTF-8.") }
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
