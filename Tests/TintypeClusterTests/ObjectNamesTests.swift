// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype

@testable import TintypeCluster

struct ObjectNamesTests {
    private let names = ObjectNames(prefix: "cache/v1", revision: "r2")
    private let key = CacheKey("https://example.com/photo.jpg")

    @Test func `an original is named by its digest, in the folder of its family`() {
        #expect(self.names.object(of: self.key) == "cache/v1/\(self.key.digest)/\(self.key.digest)")
        #expect(ObjectNames(prefix: "", revision: "").object(of: self.key) == "\(self.key.digest)/\(self.key.digest)")
    }

    @Test func `a derived entry is in the folder of its original, and its name has the revision`() {
        let thumbnail = self.key.derived("400x300")
        #expect(self.names.object(of: thumbnail) == "cache/v1/\(self.key.digest)/\(thumbnail.digest)-r2")
        let plain = ObjectNames(prefix: "cache/v1", revision: "")
        #expect(plain.object(of: thumbnail) == "cache/v1/\(self.key.digest)/\(thumbnail.digest)")
        #expect(self.names.family(of: thumbnail) == self.names.family(of: self.key))
    }

    @Test func `a family has the objects of all revisions, and no objects of other programs`() {
        let family = self.names.family(of: self.key)
        let name = family + self.key.digest
        for object in [name, name + "-r1", self.names.object(of: self.key.derived("a"))] {
            #expect(ObjectNames.isObject(object, of: family))
        }
        let foreign = [
            "", family, family + "readme.txt", name + "-", name + "0", name + ".bak", name + "-a/b", name + "-é",
            family + self.key.digest.uppercased(), String(name.dropLast()), "other/" + self.key.digest,
        ]
        for object in foreign { #expect(!ObjectNames.isObject(object, of: family), "\(object)") }
    }
}
