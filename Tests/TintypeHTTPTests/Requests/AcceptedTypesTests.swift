// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeHTTP

/// `Accept` by RFC 9110, section 12.5.1.
@Suite struct AcceptedTypesTests {
    @Test(
        arguments: [
            (["image/webp"], 1, true), (["IMAGE/WebP"], 1, true), (["image/webp;q=0.5"], 0.5, true),
            (["image/webp; q=0.123"], 0.123, true), (["image/webp ;\tQ=1.000"], 1, true),
            (["image/webp;q=1."], 1, true),
            (["image/webp;q=0"], 0, false), (["image/webp;q=0.000"], 0, false), (["image/webp;q=0."], 0, false),
            (["image/*"], 1, false), (["*/*"], 1, false), (["image/*;q=0.4"], 0.4, false), (["*/*;q=0.3"], 0.3, false),
            (["image/png"], 0, false), (["text/*"], 0, false), (["image/webp2"], 0, false), (["image/web"], 0, false),
            // The most specific range counts, in any order.
            (["*/*;q=0.1, image/*;q=0.2, image/webp;q=0.3"], 0.3, true),
            (["image/webp;q=0.3, image/*, */*"], 0.3, true),
            (["image/webp;q=0, image/*"], 0, false), (["image/*;q=0, */*"], 0, false), (["*/*, image/*;q=0"], 0, false),
            (["image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"], 1, true),
            (["image/png", "image/webp;q=0.9"], 0.9, true), (["image/webp;q=0.2, image/webp;q=0.7"], 0.2, true),
            // Extensions behind the weight
            (["image/webp;q=0.5;ext=\"a,b\""], 0.5, true), (["image/webp;;q=0.5;"], 0.5, true),
            (["image/webp;"], 1, true),
            (["a/b;c=\",image/webp,\", image/png"], 0, false),
        ] as [([String], Double, Bool)]
    )
    func `a type has the weight of its most specific range`(values: [String], quality: Double, isNamed: Bool) {
        let types = AcceptedTypes(values)
        #expect(types.quality(of: "image/webp") == quality)
        #expect(types.quality(of: "Image/WEBP") == quality)
        #expect(types.names("image/webp") == isNamed)
    }

    @Test(arguments: [
        "image/webp;q=2", "image/webp;q=1.001", "image/webp;q=-1", "image/webp;q=0.1234", "image/webp;q=.5",
        "image/webp;q=",
        "image/webp;q", "image/webp;q=0,5", "image/webp;q=a", "image/webp;q=\"0.5\"", "image/webp;q =0.5",
        "image/webp;q= 0.5",
        "image/webp;v=1", "image/webp;v=1;q=0.5", "image", "image/", "/webp", "/", "*", "*/webp", "image/we bp",
        "image//webp",
        "image/webp/x", "\"image/webp\"", "image /webp", "image/webp q=0.5", "image\\webp", "image/w\u{E9}bp",
    ])
    func `a malformed element is ignored`(element: String) {
        let types = AcceptedTypes(["image/png;q=0.5, \(element)"])
        #expect(types.quality(of: "image/png") == 0.5)
        #expect(types.quality(of: "image/webp") == 0)
        #expect(!types.names("image/webp"))
    }

    @Test(arguments: [[], [""], [" , ,"], ["malformed"], ["image/webp;q=2"]] as [[String]])
    func `every type is accepted without a valid element`(values: [String]) {
        #expect(AcceptedTypes(values).quality(of: "image/webp") == 1)
        #expect(!AcceptedTypes(values).names("image/webp"))
    }

    @Test func `elements behind the first 64 are ignored`() {
        let types = AcceptedTypes([String(repeating: "a/b,", count: 63) + "image/png,image/webp"])
        #expect(types.names("image/png"))
        #expect(!types.names("image/webp"))
        let long = AcceptedTypes([
            String(repeating: ",", count: 10_000) + String(repeating: "x,", count: 10_000) + "image/webp"
        ])
        #expect(long.names("image/webp"))
    }
}
