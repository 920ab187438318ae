import Testing

@testable import TintypeCaching

@Suite struct RecencyListTests {
    @Test func emptyListHasNoOldest() {
        #expect(RecencyList().oldest == nil)
    }

    @Test func behavesLikeAnArrayThroughManyOperations() {
        var list = RecencyList()
        var model: [Int] = []
        var random = SplitMix(state: 42)
        for _ in 0..<20_000 {
            let slot = Int(random.next() % 20)
            switch (model.firstIndex(of: slot), random.next() % 3) {
            case (nil, _):
                list.append(slot)
                model.append(slot)
            case (let position?, 0):
                list.remove(slot)
                model.remove(at: position)
            case (let position?, _):
                list.moveToNewest(slot)
                model.append(model.remove(at: position))
            }
            #expect(self.slots(of: list) == model)
        }
        list.removeAll()
        #expect(list.oldest == nil)
    }

    private func slots(of list: RecencyList) -> [Int] {
        var slots: [Int] = []
        var next = list.oldest
        while let slot = next {
            slots.append(slot)
            next = list.newer(than: slot)
        }
        return slots
    }
}
