// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct LoaderPolicyTests {
    @Test(arguments: [
        ("http://127.0.0.1:PORT/image", LoadError.Code.portNotAllowed), ("http://2130706433/a", .addressNotAllowed),
        ("http://localhost/a", .hostNotAllowed), ("http://1.2.3.4.5/a", .malformedHost),
        ("http://example.org@127.0.0.1/a", .userInformationInURL), ("data:image/png;base64,AAAA", .schemeNotAllowed),
        ("file:///etc/hostname", .schemeNotAllowed),
    ])
    func `a load that the policy refuses says why`(text: String, code: LoadError.Code) async throws {
        let origin = try FaultyOrigin(["/image": .body(try makePNG())])
        let url = try #require(URL(string: text.replacing("PORT", with: "\(origin.port)")))
        let fixture = try LoaderFixture()
        let loader = fixture.makeLoader { $0.downloads.networkPolicy = .publicInternet }
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: url) }
        #expect(error?.code == code)
        #expect(error?.underlyingError is DownloadError)
        #expect(origin.connectionCount == 0)
        #expect(fixture.cacheFiles().isEmpty)
    }

    @Test func `a load that the policy allows is none the wiser`() async throws {
        let origin = try FaultyOrigin(["/image": .body(try makePNG())])
        let fixture = try LoaderFixture()
        let loader = fixture.makeLoader { configuration in
            configuration.downloads.networkPolicy = .publicInternet
            configuration.downloads.networkPolicy.allowedPorts = [origin.port]
            configuration.downloads.networkPolicy.allowedAddresses = [AddressRange("127.0.0.1")].compactMap(\.self)
        }
        #expect(try await loader.image(for: origin.url("/image")).width == 8)
    }
}
