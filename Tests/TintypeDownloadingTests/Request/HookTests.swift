// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct HookTests {
    private struct Refusal: Error {}

    @Test func `a request hook changes what is sent, once for all callers that share`() async throws {
        let origin = try FaultyOrigin(["/a": .body([9]), "/b": .echo])
        let calls = Recorder<URL>()
        let target = origin.url("/b")
        let hooks = DownloadHooks(modifyRequest: { request in
            calls.record(request.url)
            var request = request
            request.url = target
            request.headers["X-Signed"] = "yes"
            return request
        })
        let downloader = DownloadActor(hooks: hooks)
        let body = try await downloader.body(at: origin.url("/a"))
        #expect(String(decoding: body, as: UTF8.self).contains("X-Signed: yes"))
        #expect(calls.elements == [origin.url("/a")])
        #expect(origin.requestCount(for: "/a") == 0)
    }

    @Test func `a request hook may refuse`() async throws {
        let origin = try FaultyOrigin(["/a": .body([9])])
        let downloader = DownloadActor(hooks: DownloadHooks(modifyRequest: { _ in throw Refusal() }))
        let error = try await downloader.error(at: origin.url("/a"))
        #expect(error.code == .refused)
        #expect(error.underlyingError is Refusal)
        #expect(origin.requestCount(for: "/a") == 0)
        #expect(await downloader.counters.failed == 1)
    }

    @Test(arguments: ["file:///etc/hostname", "data:,a", "http://a/b\r\nc"])
    func `a request hook cannot lead elsewhere than to HTTP`(target: String) async throws {
        let origin = try FaultyOrigin(["/a": .body([9])])
        let hooks = DownloadHooks(modifyRequest: { request in
            var request = request
            request.url = URL(string: target) ?? request.url
            if URL(string: target) == nil { throw Refusal() }
            return request
        })
        let error = try await DownloadActor(hooks: hooks).error(at: origin.url("/a"))
        #expect(error.code == .unsupportedScheme || error.code == .refused || error.code == .hostNotFound)
    }

    @Test func `bodies are decrypted, then responses changed, once for all callers that share`() async throws {
        let door = Latch()
        let origin = try FaultyOrigin(["/a": .held(by: door, body: [1, 2, 3])])
        let calls = Recorder<String>()
        let hooks = DownloadHooks(
            decrypt: { body, response in
                calls.record("decrypt \(response.status ?? 0)")
                return Data(body.map { $0 ^ 0xFF })
            },
            modifyResponse: { response in
                calls.record("modify")
                var response = response
                response.headers["X-Seen"] = "yes"
                return response
            }
        )
        let downloader = DownloadActor(hooks: hooks)
        let request = DownloadRequest(url: origin.url("/a"))
        let shown = Recorder<Data>()
        let tasks = (0..<20).map { _ in
            Task { try await downloader.response(for: request, bytesObserver: { shown.record($0) }) }
        }
        await until { await downloader.counters.shared >= 19 }
        door.open()
        for task in tasks {
            let response = try await task.value
            #expect(response.body == Data([0xFE, 0xFD, 0xFC]))
            #expect(response.headers["X-Seen"] == "yes")
        }
        #expect(calls.elements == ["decrypt 200", "modify"])
        #expect(shown.elements.isEmpty)
    }

    @Test func `a response hook may refuse, and a decryption fail`() async throws {
        let origin = try FaultyOrigin(["/a": .body([9])])
        let refusing = DownloadActor(hooks: DownloadHooks(modifyResponse: { _ in throw Refusal() }))
        #expect(try await refusing.error(at: origin.url("/a")).code == .refused)
        let failing = DownloadActor(hooks: DownloadHooks(decrypt: { _, _ in throw Refusal() }))
        #expect(try await failing.error(at: origin.url("/a")).code == .decryptionFailed)
    }

    @Test(arguments: [404, 304, 503, 206, nil])
    func `a status that a response hook sets is judged as that of a server`(status: Int?) async throws {
        let origin = try FaultyOrigin(["/a": .body([9])])
        let hooks = DownloadHooks(modifyResponse: { response in
            var response = response
            response.status = status
            return response
        })
        let downloader = DownloadActor(hooks: hooks)
        if status == 206 {
            #expect(try await downloader.response(for: DownloadRequest(url: origin.url("/a"))).status == 206)
            return
        }
        let error = try await downloader.error(at: origin.url("/a"))
        #expect(error.code == (status == nil ? .invalidResponse : .badStatus))
        #expect(error.status == status)
        #expect(await downloader.counters.failed == 1)
        guard let status else { return }
        var request = DownloadRequest(url: origin.url("/a"))
        request.acceptableStatusCodes = StatusCodes.success.union(status)
        #expect(try await downloader.response(for: request).status == status)
    }

    @Test func `a status that a response hook sets is tried again where it is transient`() async throws {
        let origin = try FaultyOrigin(["/a": .body([2])])
        origin.script("/a", sequence: [.body([1])])
        let hooks = DownloadHooks(modifyResponse: { response in
            var response = response
            if response.body == Data([1]) { response.status = 503 }
            return response
        })
        var configuration = DownloadActor.Configuration()
        configuration.retryPolicy = RetryPolicy(maximumAttempts: 2, initialDelay: .milliseconds(1))
        let downloader = DownloadActor(configuration: configuration, hooks: hooks)
        #expect(try await downloader.body(at: origin.url("/a")) == Data([2]))
    }

    @Test func `a body that a hook empties is an empty body`() async throws {
        let origin = try FaultyOrigin(["/a": .body([9])])
        let emptied = DownloadActor(hooks: DownloadHooks(decrypt: { _, _ in Data() }))
        #expect(try await emptied.error(at: origin.url("/a")).code == .emptyBody)
    }

    @Test func `a hook receives the target of each redirect, and may refuse it`() async throws {
        let origin = try FaultyOrigin([
            "/a": .redirect(to: "b?c=d#e"), "/b": .redirect(to: "/secret"), "/secret": .body([9]),
        ])
        let targets = Recorder<String>()
        let hooks = DownloadHooks(checkRedirect: { url in
            targets.record(url.absoluteString)
            if url.path == "/secret" { throw Refusal() }
        })
        let downloader = DownloadActor(hooks: hooks)
        let error = try await downloader.error(at: origin.url("/a"))
        #expect(error.code == .refused)
        #expect(error.underlyingError is Refusal)
        #expect(error.message.contains("redirect"))
        #expect(targets.elements == [origin.url("/b?c=d").absoluteString, origin.url("/secret").absoluteString])
        #expect(origin.requestCount(for: "/secret") == 0)
        #expect(await downloader.counters.retried == 0)
        let own = DownloadError(code: .hostNotAllowed, message: "no")
        let refusing = DownloadActor(hooks: DownloadHooks(checkRedirect: { _ in throw own }))
        #expect(try await refusing.error(at: origin.url("/a")).code == .hostNotAllowed)
        #expect(try await refusing.stream(for: DownloadRequest(url: origin.url("/secret"))).head.status == 200)
        await #expect(throws: DownloadError.self) {
            try await refusing.stream(for: DownloadRequest(url: origin.url("/a")))
        }
    }

    @Test func `cancelling the last caller cancels the hook`() async throws {
        let origin = try FaultyOrigin(["/a": .body([9])])
        let (isInside, wasCancelled) = (Gate(), Gate())
        let hooks = DownloadHooks(modifyRequest: { request in
            await withTaskCancellationHandler {
                await isInside.open()
                await wasCancelled.wait()
            } onCancel: {
                Task { await wasCancelled.open() }
            }
            return request
        })
        let downloader = DownloadActor(hooks: hooks)
        let task = Task { try await downloader.body(at: origin.url("/a")) }
        await isInside.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await wasCancelled.wait()
        #expect(origin.requestCount(for: "/a") == 0)
    }
}
