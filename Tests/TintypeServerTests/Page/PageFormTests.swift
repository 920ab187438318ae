// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeServer

@Suite("The form of the page without JavaScript")
struct PageFormTests {
    @Test(arguments: [
        (
            "/?url=https%3A%2F%2Fa.example%2Fb.jpg&w=100&h=&rt=fit&f=webp",
            "/w:100/rt:fit/plain/https%3A%2F%2Fa.example%2Fb.jpg@webp"
        ),
        ("/?url=local%3A%2F%2F%2Fa+b.png", "/plain/local%3A%2F%2F%2Fa%20b.png"),
        ("/?w=1&url=x", "/w:1/plain/x"), ("/?url=a%2F..%2Fb&w=1%2F2", "/w:1%2F2/plain/a%2F..%2Fb"),
        ("/?url=x&bg=000&unknown=1", "/plain/x"), ("/?url=x%0D%0Ay", "/plain/x%0D%0Ay"),
    ])
    func `the fields become a path`(target: String, path: String) {
        #expect(PageForm.path(of: target) == path)
    }

    @Test(arguments: ["/", "/?", "/?w=100", "/?url=", "/?url", "/?=&&="])
    func `a form without a source has no path`(target: String) {
        #expect(PageForm.path(of: target) == nil)
    }
}
