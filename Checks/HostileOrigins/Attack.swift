// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Tintype
import TintypeTestSupport

/// A run that alternates calm and attack, and checks the requirements for both.
struct Attack {
    private static let calm = Duration.seconds(10)
    private static let storm = Duration.seconds(30)
    /// The pause between two phases.
    ///
    /// Loads that are running when a phase ends count for that phase. Loads that start in the pause count for neither.
    private static let settling = Duration.seconds(1)
    /// A little more than the loader's longest limit.
    private static let patience = Duration.seconds(120)
    private static let allowedRise = 1.5
    private static let allowedGrowth = 16 << 20

    private let only: String?

    init(only: String?) {
        self.only = only
    }

    func run(seconds: Double) async throws -> Bool {
        let origin = try await HostileOrigin()
        let folder = try TemporaryDirectory(prefix: "tintype-attack")
        let loader = LoaderActor(configuration: self.configuration(origin, folder))
        let hostile = try HostileTraffic(origin: origin, only: self.only, loader: loader)
        let healthy = try await HealthyTraffic(loader: loader)
        let ledger = Ledger()
        HostileOrigins.say("\(hostile.behaviourCount) behaviours")
        await self.meetAll(hostile, ledger)
        let resources = try await self.alternate(hostile, healthy, ledger, seconds: seconds)
        origin.stop()
        return self.report(ledger, resources)
    }

    /// Returns the default configuration, which is the target of the attack, with the changes that the run requires.
    private func configuration(_ origin: HostileOrigin, _ folder: TemporaryDirectory) -> LoaderActor.Configuration {
        var configuration = LoaderActor.Configuration()
        // Small caches are full early, so that later growth is a leak.
        configuration.memory.costLimit = 32 << 20
        configuration.disk = DiskCache.Configuration(directory: folder.url(of: "cache"))
        configuration.disk?.sizeLimit = 32 << 20
        configuration.downloads.tls.authorities = .file(path: origin.certificatePath)
        return configuration
    }

    private func meetAll(_ hostile: HostileTraffic, _ ledger: Ledger) async {
        let start = ContinuousClock.now
        let endings = await hostile.meetAll(ledger, patience: Self.patience)
        HostileOrigins.say(
            "each alone, all at once: the last was over after \(Self.seconds(.now - start)) s; the ten longest:"
        )
        for (name, ending) in endings.prefix(10) {
            HostileOrigins.say("  \(name): \(ending.text) after \(Self.seconds(ending.duration)) s")
        }
    }

    /// Alternates calm and attack.
    ///
    /// Returns the process's resources at the end of each calm.
    private func alternate(
        _ hostile: HostileTraffic,
        _ healthy: HealthyTraffic,
        _ ledger: Ledger,
        seconds: Double
    ) async throws -> [Resources] {
        let phase = Mutex(Phase.between)
        let traffic = Task { await healthy.run(ledger) { phase.withLock { $0 } } }
        var resources: [Resources] = []
        let end = ContinuousClock.now + .seconds(seconds)
        repeat {
            phase.withLock { $0 = .between }
            try await Task.sleep(for: Self.settling)
            phase.withLock { $0 = .calm }
            try await Task.sleep(for: Self.calm)
            phase.withLock { $0 = .between }
            resources.append(try Resources.now())
            let attack = Task { await hostile.run(ledger) }
            try await Task.sleep(for: Self.settling)
            phase.withLock { $0 = .attack }
            try await Task.sleep(for: Self.storm)
            phase.withLock { $0 = .between }
            attack.cancel()
            await attack.value
        } while ContinuousClock.now < end
        try await Task.sleep(for: Self.settling)
        resources.append(try Resources.now())
        traffic.cancel()
        await traffic.value
        return resources
    }

    private func report(_ ledger: Ledger, _ resources: [Resources]) -> Bool {
        var isSafe = true
        func line(_ text: String, _ holds: Bool = true) {
            HostileOrigins.say("\(text)\(holds ? "" : "   SHORT")")
            isSafe = isSafe && holds
        }
        let (calm, attack) = ledger.healthy
        for (name, loads) in [("calm", calm), ("attack", attack)] {
            let figures = [0.5, 0.9, 0.99, 0.999].map { "\(Self.milliseconds(Self.quantile(loads, $0))) ms" }
            line("healthy loads, \(name): \(loads.count), p50 p90 p99 p99.9 " + figures.joined(separator: " "))
            line("  mean parts of all: \(Self.parts(of: loads[...]))")
            line("  mean parts of the slowest fiftieth: \(Self.parts(of: loads.suffix(loads.count / 50)))")
        }
        let rise = Self.quantile(attack, 0.99) / Self.quantile(calm, 0.99)
        line("healthy p99 under attack: \(Self.rounded(rise)) times that of calm", rise < Self.allowedRise)
        let honest = ledger.honest
        line(
            "hostile loads ended: \(ledger.hostileLoads); neighbours: \(honest.images) served, \(honest.errors) refused"
        )
        // Compare with the second calm. Before the first one, the loader has met each behaviour only once.
        let first = resources[min(1, resources.count - 1)]
        if let last = resources.last {
            line("resident: \(resources.map { $0.residentBytes >> 20 }) MiB")
            line(
                "heap: \(resources.map { $0.heapBytes >> 20 }) MiB",
                last.heapBytes - first.heapBytes < Self.allowedGrowth
            )
            line("descriptors: \(resources.map(\.descriptors))", last.descriptors <= first.descriptors + 16)
            line("processor time: \(Self.rounded(last.cpuSeconds)) s")
        }
        for (fault, count) in ledger.faults.sorted(by: { $0.key < $1.key }) { line("\(count) times: \(fault)", false) }
        return isSafe
    }

    private static func quantile(_ sorted: [HealthyLoad], _ share: Double) -> Duration {
        sorted.isEmpty ? .zero : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))].duration
    }

    /// Returns the mean times of the parts of loads.
    private static func parts(of loads: ArraySlice<HealthyLoad>) -> String {
        let means = HealthyLoad.partNames.enumerated().map { index, name in
            let sum = loads.reduce(0.0) { $0 + Double($1.parts[index]) }
            return "\(name) \(Self.rounded(sum / Double(max(1, loads.count))))"
        }
        return means.joined(separator: ", ") + " ms"
    }

    private static func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }

    private static func seconds(_ duration: Duration) -> Double { self.rounded(duration / .seconds(1)) }

    private static func milliseconds(_ duration: Duration) -> Double { self.rounded(duration / .milliseconds(1)) }
}
