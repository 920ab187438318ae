// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Tintype
import TintypeTestSupport

/// Loads of the hostile origin's behaviours.
final class HostileTraffic: Sendable {
    /// How one load ended.
    struct Ending: Sendable {
        let text: String
        let duration: Duration
    }

    /// The mean interval between two loads of one behaviour, randomised so that they do not all start at once.
    private static let interval = Duration.seconds(4)
    /// The same for each of the many behaviours of the table.
    private static let tableInterval = Duration.seconds(30)
    /// The pause between a load and its honest neighbour, so that bytes after the response arrive before it.
    private static let pause = Duration.milliseconds(400)

    private let origin: HostileOrigin
    private let behaviours: [HostileOrigin.Behaviour]
    private let loader: LoaderActor
    private let next = Atomic<Int>(1)

    init(origin: HostileOrigin, only name: String?, loader: LoaderActor) throws {
        self.origin = origin
        self.behaviours = origin.behaviours.filter { behaviour in
            name.map { behaviour.name == $0 || $0 == "http2" && behaviour.isInTable } ?? true
        }
        guard !self.behaviours.isEmpty else { throw TestSupportError("There is no behaviour \(name ?? "").") }
        self.loader = loader
    }

    var behaviourCount: Int { self.behaviours.count }

    /// Loads each behaviour once, all at the same time, and returns how each ended, the slowest first.
    ///
    /// A load that takes longer than `patience` is cancelled, and counts as a fault.
    func meetAll(_ ledger: Ledger, patience: Duration) async -> [(name: String, ending: Ending)] {
        let meetings = Task {
            await withTaskGroup(of: (HostileOrigin.Behaviour, Ending?).self) { group in
                for behaviour in self.behaviours {
                    group.addTask {
                        async let neighbour: Void = self.loadNeighbour(behaviour, ledger)
                        let ending = await self.load(behaviour, ledger)
                        await neighbour
                        return (behaviour, ending)
                    }
                }
                var endings: [(name: String, ending: Ending)] = []
                for await (behaviour, ending) in group {
                    if let ending {
                        endings.append((behaviour.name, ending))
                    } else {
                        ledger.add(fault: "\(behaviour.name): did not end within \(patience)")
                    }
                }
                return endings.sorted { $0.ending.duration > $1.ending.duration }
            }
        }
        let alarm = Task {
            try await Task.sleep(for: patience)
            meetings.cancel()
        }
        defer { alarm.cancel() }
        return await meetings.value
    }

    /// Loads every behaviour repeatedly and in parallel, until it is cancelled.
    func run(_ ledger: Ledger) async {
        await withDiscardingTaskGroup { group in
            for behaviour in self.behaviours {
                group.addTask {
                    let interval = behaviour.isInTable ? Self.tableInterval : Self.interval
                    try? await Task.sleep(for: interval * Double.random(in: 0...1))
                    while !Task.isCancelled {
                        let start = ContinuousClock.now
                        async let neighbour: Void = self.loadNeighbour(behaviour, ledger)
                        _ = await self.load(behaviour, ledger)
                        await neighbour
                        if behaviour.hasHonestNeighbour {
                            try? await Task.sleep(for: Self.pause)
                            await self.loadHonest(behaviour, ledger)
                        }
                        try? await Task.sleep(
                            until: start + interval * Double.random(in: 0.5...1.5),
                            clock: .continuous
                        )
                    }
                }
            }
        }
    }

    /// Returns `nil` if the load was cancelled.
    private func load(_ behaviour: HostileOrigin.Behaviour, _ ledger: Ledger) async -> Ending? {
        let number = self.next.add(1, ordering: .relaxed).oldValue
        let start = ContinuousClock.now
        do {
            let image = try await self.loader.image(for: behaviour.url(number))
            ledger.addHostileLoad()
            if !Pixels.isHonest(image, number) {
                ledger.add(fault: "\(behaviour.name): another image was served")
            } else if behaviour.expectation == .error {
                ledger.add(fault: "\(behaviour.name): an image was served where none could be")
            }
            return Ending(text: "image", duration: .now - start)
        } catch let error as LoadError {
            ledger.addHostileLoad()
            if behaviour.expectation == .whole { ledger.add(fault: "\(behaviour.name): \(error)") }
            return Ending(text: "\(error.code)", duration: .now - start)
        } catch is CancellationError {
            return nil
        } catch {
            ledger.add(fault: "\(behaviour.name): not a LoadError: \(error)")
            return Ending(text: "\(error)", duration: .now - start)
        }
    }

    /// Loads an honest answer over the connection of an attack, at the same time.
    private func loadNeighbour(_ behaviour: HostileOrigin.Behaviour, _ ledger: Ledger) async {
        if behaviour.isInTable { await self.loadHonest(behaviour, ledger) }
    }

    /// Loads an image from an origin that also attacks.
    ///
    /// The load must end with its own image or an error.
    private func loadHonest(_ behaviour: HostileOrigin.Behaviour, _ ledger: Ledger) async {
        let number = self.next.add(1, ordering: .relaxed).oldValue
        do {
            let image = try await self.loader.image(for: behaviour.honestURL(number))
            ledger.addHonest(wasServed: true)
            if !Pixels.isHonest(image, number) {
                ledger.add(fault: "\(behaviour.name): a neighbour got another image")
            }
        } catch is LoadError {
            ledger.addHonest(wasServed: false)
        } catch {
            // The attack is over.
        }
    }
}
