// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeServer

@Suite("Files that the page has sent")
struct UploadStoreTests {
    @Test
    func `a file is found by the name that it got`() {
        let uploads = UploadStore()
        let names = [1, 2].map { uploads.add(Data([$0])) }
        #expect(names[0] != names[1])
        #expect(names.map { uploads[$0] } == [Data([1]), Data([2])])
        #expect(uploads["unknown"] == nil)
    }

    @Test
    func `the oldest files go when there are too many bytes`() {
        let uploads = UploadStore()
        let names = (0..<5).map { _ in uploads.add(Data(count: UploadStore.byteLimit)) }
        #expect(names.map { uploads[$0] != nil } == [false, true, true, true, true])
    }
}
