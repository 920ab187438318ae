// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeServer

/// The places of requests, as a pure value.
@Suite struct AdmissionTests {
    private let start = ContinuousClock.now

    private static func client(_ number: UInt8) -> ClientAddress {
        ClientAddress(bytes: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, number])
    }

    private func enter(
        _ state: inout AdmissionState,
        _ count: Int,
        origin: String = "a",
        client: UInt8 = 1,
        at time: Duration = .zero
    ) -> Int {
        (0..<count).count { _ in
            (try? state.enter(origin, Self.client(client), at: self.start + time)) != nil
        }
    }

    @Test("one client leaves places for others, and has all while it is alone")
    func clients() {
        var alone = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        #expect(self.enter(&alone, 100) == 40)
        #expect(alone.refusal("a", Self.client(1)) == .overload)
        // Other origins have places of their own.
        #expect(self.enter(&alone, 100, origin: "b", client: 2) == 20)

        var shared = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        #expect(self.enter(&shared, 1, client: 2) == 1)
        #expect(self.enter(&shared, 100) == 20)
        #expect(shared.refusal("a", Self.client(1)) == .client)
        #expect(Admission.Refusal.client.status == 429 && Admission.Refusal.overload.status == 503)
    }

    @Test("one origin leaves places for others")
    func origins() {
        var state = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        let slow = (UInt8(1)...10).reduce(0) { $0 + self.enter(&state, 20, origin: "slow", client: $1) }
        #expect(slow == 40)
        #expect(self.enter(&state, 5, origin: "fast", client: 20) == 5)
    }

    @Test("the places that a request leaves are free again")
    func leaving() throws {
        var state = AdmissionState(slotCount: 1, countLimit: 4, waitLimit: .seconds(3))
        for _ in 0..<100 {
            let number = try state.enter("a", Self.client(1), at: self.start)
            state.leave("a", Self.client(1), number)
        }
        #expect(state.count == 0)
        #expect(state.oldestAge(at: self.start) == .zero)
    }

    @Test("a server whose images take long lets fewer wait", arguments: 1...4)
    func slowImages(slots: Int) throws {
        var state = AdmissionState(slotCount: slots, countLimit: 40, waitLimit: .seconds(3))
        _ = self.enter(&state, 30)
        for second in 1...40 { state.didMakeImage(at: self.start + .seconds(2 * second)) }
        #expect(state.limit < 2 * slots + 5)
    }

    @Test("a server that was slow once lets more wait again when it is fast", arguments: 1...4)
    func recovery(slots: Int) throws {
        var state = AdmissionState(slotCount: slots, countLimit: 40, waitLimit: .seconds(3))
        var numbers: [UInt64] = []
        while let number = try? state.enter("a", Self.client(1), at: self.start) { numbers.append(number) }
        for second in 1...40 { state.didMakeImage(at: self.start + .seconds(10 * second)) }
        for number in numbers { state.leave("a", Self.client(1), number) }
        #expect(state.count == 0)
        // Bursts of requests, each of which is answered quickly.
        var time = self.start + .seconds(1_000)
        var admitted = 0
        for _ in 0..<200 {
            numbers = []
            for _ in 0..<40 {
                if let number = try? state.enter("a", Self.client(1), at: time) { numbers.append(number) }
            }
            admitted = numbers.count
            for number in numbers {
                time += .milliseconds(5)
                state.didMakeImage(at: time)
                state.leave("a", Self.client(1), number)
            }
        }
        #expect(admitted == 40)
    }
}
