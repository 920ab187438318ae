// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct TLSTests {
    private func trusting(_ origin: TLSOrigin) -> TLSPolicy {
        var policy = TLSPolicy()
        policy.authorities = .file(path: origin.authorityPath)
        return policy
    }

    private func body(_ origin: TLSOrigin, _ policy: TLSPolicy?, invalid: Bool = false) async throws -> String {
        let request = DownloadRequest(url: origin.url(), tls: policy, allowsInvalidCertificates: invalid)
        return String(decoding: try await DownloadActor.patient().response(for: request).body, as: UTF8.self)
    }

    private func code(_ origin: TLSOrigin, _ policy: TLSPolicy?) async throws -> DownloadError.Code {
        try await DownloadActor.patient().error(for: DownloadRequest(url: origin.url(), tls: policy)).code
    }

    @Test(arguments: [TLSOrigin.Certificate.expired, .wrongHost, .selfSigned])
    func `a bad certificate is refused, even from a trusted authority`(certificate: TLSOrigin.Certificate) async throws
    {
        let origin = try TLSOrigin(certificate)
        #expect(try await self.code(origin, self.trusting(origin)) == .tlsFailed)
        #expect(try await self.body(origin, nil, invalid: true) == "hello")
    }

    @Test func `an answer that is no TLS is told from a bad certificate`() async throws {
        let plain = try NginxOrigin(files: ["a": Data([1])])
        let port = try #require(plain.url("/a").port)
        let url = try #require(URL(string: "https://127.0.0.1:\(port)/a"))
        let error = try await DownloadActor.patient().error(for: DownloadRequest(url: url))
        #expect(error.code == .tlsFailed)
        #expect(error.message.hasSuffix("Does the port speak TLS? If it does not, use http."), "\(error.message)")
    }

    @Test(arguments: ["TLSv1", "TLSv1.1"])
    func `a protocol that is too old is refused`(protocols: String) async throws {
        let origin = try TLSOrigin(protocols: protocols)
        #expect(try await self.code(origin, self.trusting(origin)) == .tlsFailed)
    }

    @Test func `a minimum version is kept`() async throws {
        let origin = try TLSOrigin(protocols: "TLSv1.2")
        var policy = self.trusting(origin)
        #expect(try await self.body(origin, policy) == "hello")
        policy.minimumVersion = .tls1_3
        #expect(try await self.code(origin, policy) == .tlsFailed)
    }

    @Test func `an authority of our own vouches, as a file and as text`() async throws {
        let origin = try TLSOrigin()
        #expect(try await self.code(origin, nil) == .tlsFailed)
        #expect(try await self.body(origin, self.trusting(origin)) == "hello")
        var policy = TLSPolicy()
        policy.authorities = .pem(try Data(contentsOf: URL(filePath: origin.authorityPath)))
        #expect(try await self.body(origin, policy) == "hello")
    }

    @Test func `the policy of the configuration holds for all`() async throws {
        let origin = try TLSOrigin()
        var configuration = DownloadActor.Configuration()
        configuration.tls = self.trusting(origin)
        let downloader = DownloadActor(configuration: configuration)
        let response = try await downloader.response(for: DownloadRequest(url: origin.url()))
        #expect(response.metrics.httpVersion == .http2)
        #expect(response.metrics.tls > .zero)
        #expect(response.metrics.remoteAddress == "127.0.0.1:\(origin.port)")
        let second = try await downloader.response(for: DownloadRequest(url: origin.url("/b")))
        #expect(second.metrics.connectionReused)
    }

    @Test func `pinned keys are required`() async throws {
        let origin = try TLSOrigin()
        var policy = self.trusting(origin)
        policy.pinnedPublicKeys = [try origin.publicKeyDigest()]
        #expect(try await self.body(origin, policy) == "hello")
        policy.pinnedPublicKeys = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
        #expect(try await self.code(origin, policy) == .tlsFailed)
    }

    @Test func `a pin holds on a connection that is open already`() async throws {
        let origin = try TLSOrigin()
        let downloader = DownloadActor.patient()
        let first = DownloadRequest(url: origin.url(), tls: self.trusting(origin))
        _ = try await downloader.response(for: first)
        var second = first
        second.tls?.pinnedPublicKeys = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
        #expect(try await downloader.error(for: second).code == .tlsFailed)
    }

    @Test func `a client certificate stays with its origin, wherever it was set`() async throws {
        let asking = try TLSOrigin(asksForCertificate: true)
        let origin = try FaultyOrigin(["/r": .redirect(to: asking.url().absoluteString)])
        var policy = self.trusting(asking)
        policy.clientCertificate = TLSPolicy.ClientCertificate(
            certificate: try asking.clientCertificate(),
            privateKey: try asking.clientKey()
        )
        var configuration = DownloadActor.Configuration()
        configuration.tls = policy
        let downloader = DownloadActor(configuration: configuration)
        #expect(try await downloader.error(at: origin.url("/r")).code == .badStatus)
        #expect(try await downloader.response(for: DownloadRequest(url: asking.url())).status == 200)
        let request = DownloadRequest(url: origin.url("/r"), tls: policy)
        #expect(try await DownloadActor.patient().error(for: request).code == .badStatus)
    }

    @Test func `a client certificate is shown where it is asked for`() async throws {
        let origin = try TLSOrigin(asksForCertificate: true)
        var policy = self.trusting(origin)
        #expect(try await self.code(origin, policy) == .badStatus)
        policy.clientCertificate = TLSPolicy.ClientCertificate(
            certificate: try origin.clientCertificate(),
            privateKey: try origin.clientKey()
        )
        #expect(try await self.body(origin, policy) == "hello")
        #expect(!"\(policy)".contains("PRIVATE"))
    }
}
