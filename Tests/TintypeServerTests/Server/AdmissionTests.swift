// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeServer

/// The places of requests, as a pure value.
@Suite struct AdmissionTests {
    private let start = ContinuousClock.now

    private static func client(_ number: Int) -> ClientAddress {
        let (high, low) = (UInt8(number >> 8), UInt8(number & 0xFF))
        return ClientAddress(bytes: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, high, low])
    }

    private func enter(
        _ state: inout AdmissionState,
        _ count: Int,
        origin: String = "a",
        client: Int = 1,
        at time: Duration = .zero
    ) -> Int {
        (0..<count).count { _ in
            (try? state.enter(origin, Self.client(client), at: self.start + time)) != nil
        }
    }

    @Test func `one client leaves places for others, and has more while it is alone`() {
        var alone = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        #expect(self.enter(&alone, 100) == 30)
        #expect(alone.refusal("a", Self.client(1)) == .overload)
        #expect(self.enter(&alone, 100, client: 2) == 10)
        // Other origins have places of their own.
        #expect(self.enter(&alone, 100, origin: "b", client: 2) == 13)

        var shared = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        #expect(self.enter(&shared, 1, client: 2) == 1)
        #expect(self.enter(&shared, 100) == 13)
        #expect(shared.refusal("a", Self.client(1)) == .client)
        #expect(Admission.Refusal.client.status == 429 && Admission.Refusal.overload.status == 503)
    }

    @Test func `one origin leaves places for others`() {
        var state = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        let slow = (1...10).reduce(0) { $0 + self.enter(&state, 20, origin: "slow", client: $1) }
        #expect(slow == 40)
        #expect(self.enter(&state, 5, origin: "fast", client: 20) == 5)
    }

    @Test func `the places that a request leaves are free again`() throws {
        var state = AdmissionState(slotCount: 1, countLimit: 4, waitLimit: .seconds(3))
        for _ in 0..<100 {
            let number = try state.enter("a", Self.client(1), at: self.start)
            state.leave("a", Self.client(1), number)
        }
        #expect(state.count == 0)
        #expect(state.oldestAge(at: self.start) == .zero)
    }

    @Test(arguments: 1...4)
    func `a server whose images take long lets fewer wait`(slots: Int) throws {
        var state = AdmissionState(slotCount: slots, countLimit: 40, waitLimit: .seconds(3))
        for _ in 1...100 { state.didMakeImage(in: .seconds(4), at: self.start) }
        #expect(state.limit < 2 * slots + 5)
    }

    @Test(arguments: 1...4)
    func `a server that was slow once lets more wait again when it is fast`(slots: Int) throws {
        var state = AdmissionState(slotCount: slots, countLimit: 40, waitLimit: .seconds(3))
        for _ in 1...100 { state.didMakeImage(in: .seconds(20), at: self.start) }
        #expect(state.limit < 40)
        for _ in 1...200 { state.didMakeImage(in: .milliseconds(5), at: self.start) }
        #expect(self.enter(&state, 100) == 30)
    }

    @Test func `a few large images do not make an idle server refuse others`() {
        var state = AdmissionState(slotCount: 2, countLimit: 128, waitLimit: .seconds(3))
        for _ in 1...6 { state.didMakeImage(in: .seconds(5), at: self.start) }
        #expect(self.enter(&state, 24) == 24)
    }

    @Test func `after ten seconds without an image, the lanes are estimated anew`() {
        var state = AdmissionState(slotCount: 2, countLimit: 128, waitLimit: .seconds(3))
        for _ in 1...100 { state.didMakeImage(in: .seconds(4), at: self.start) }
        var later = state
        #expect(self.enter(&state, 100, at: .seconds(10)) < 5)
        #expect(self.enter(&later, 100, at: .seconds(11)) > 90)
    }

    private func wait(
        _ state: inout AdmissionState,
        client: Int,
        after refusal: Admission.Refusal = .overload,
        at time: Duration = .zero
    ) -> Int {
        state.retrySeconds(after: refusal, Self.client(client), at: self.start + time)
    }

    @Test func `an overloaded server calls its clients back one after the other, within 30 seconds`() {
        var state = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        // Two lanes that need 50 ms for an image make 40 a second, so 160 clients return in each second.
        let waits = (0..<8_000).map { self.wait(&state, client: $0) }
        #expect(waits.first == 1 && waits.last == 30)
        #expect(waits.count { $0 == 5 } == 160)
        #expect(self.wait(&state, client: 8_000, after: .client) == 1)
        #expect(self.wait(&state, client: 8_000, at: .seconds(40)) == 1)
    }

    @Test func `a client that does not wait gets the same time again, and delays no other client`() {
        var state = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        for client in 0..<480 { _ = self.wait(&state, client: client) }
        #expect(self.wait(&state, client: 1_000) == 4)
        let waits = (0..<6_000).map { _ in self.wait(&state, client: 1_000, at: .seconds(1)) }
        #expect(Set(waits) == [3])
        #expect(self.wait(&state, client: 1_001, at: .seconds(1)) == 3)
    }

    @Test func `if refused clients do not return, the next one may return after a second`() {
        var state = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        for client in 0..<1_000 { _ = self.wait(&state, client: client) }
        #expect(self.enter(&state, 20) == 20)
        #expect(self.wait(&state, client: 1_000) == 1)
        // Half of the places are taken from here on, so the times do not start again.
        for client in 0..<1_000 { _ = self.wait(&state, client: client) }
        #expect(self.enter(&state, 1) == 1)
        #expect(self.wait(&state, client: 1_001) > 5)
    }

    @Test func `a client that waits for slow origins leaves places for others`() {
        var state = AdmissionState(slotCount: 2, countLimit: 40, waitLimit: .seconds(3))
        let taken = (0..<20).reduce(0) { $0 + self.enter(&state, 40, origin: "slow \($1)") }
        #expect(taken == 120)
        #expect(self.enter(&state, 5, origin: "fast", client: 2) == 5)
    }
}
