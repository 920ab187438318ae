// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeHTTP

struct PercentEncodingTests {
    @Test(arguments: [
        ("azAZ09-._~", "", "azAZ09-._~"), ("a/b c", "/", "a/b%20c"), ("a/b", "", "a%2Fb"),
        ("!$&'()*+,;=:@", "", "%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40"), ("é%00\n", "", "%C3%A9%2500%0A"),
    ])
    func `only unreserved and allowed bytes stay as they are`(text: String, allowed: String, encoded: String) {
        #expect(PercentEncoding.encode(text.utf8, allowing: allowed) == encoded)
        #expect(PercentEncoding.decode(encoded.utf8) == Array(text.utf8))
    }

    @Test(arguments: [
        ("", ""), ("%", "%"), ("a%4", "a%4"), ("%41", "A"), ("%4%41", "%4A"), ("%%41", "%A"), ("%zz%7a", "%zzz"),
        ("%2541", "%41"), ("%+1", "%+1"),
    ])
    func `a percent sign without two digits stands for itself`(text: String, decoded: String) {
        #expect(PercentEncoding.decode(text.utf8) == Array(decoded.utf8))
        #expect(PercentEncoding.decode(("%41" + text).utf8.dropFirst(3)) == Array(decoded.utf8))
    }
}
