// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

@Suite(.waiting, .timeLimit(.minutes(5)))
struct LocalFolderFetcherTests {
    private let directory: TemporaryDirectory
    private let fetcher: LocalFolderFetcher

    init() throws {
        self.directory = try TemporaryDirectory()
        try self.directory.write("secret".utf8, to: "secret.jpg")
        try self.directory.write("sibling".utf8, to: "root-private/a.jpg")
        try self.directory.write("inner".utf8, to: "root/folder/inner.jpg")
        self.fetcher = try LocalFolderFetcher(root: self.directory.path(of: "root"), downloads: .public)
    }

    @Test(arguments: [
        ("a.jpg", "a.jpg"), ("a b.jpg", "a%20b.jpg"), ("maracujá.jpg", "maracuj%C3%A1.jpg"), ("é.jpg", "é.jpg"),
        ("a+b.jpg", "a+b.jpg"), ("a#b.jpg", "a%23b.jpg"), ("a?b.jpg", "a%3Fb.jpg"), ("%23.jpg", "%2523.jpg"),
        ("%3F.jpg", "%253F.jpg"), ("100%.jpg", "100%25.jpg"), ("100%.jpg", "100%.jpg"), ("...", "..."),
        ("..a", "..a"), ("%2e%2e", "%252e%252e"), ("deep/er/and/deeper.jpg", "deep/er/and/deeper.jpg"),
        ("a:b@c&d=e;f.jpg", "a:b@c&d=e;f.jpg"), ("a.jpg", "a.jpg?version=2"),
    ])
    func `a file is fetched, whatever its name`(name: String, path: String) async throws {
        try self.directory.write(name.utf8, to: "root/\(name)")
        for scheme in ["local", "LOCAL"] {
            let response = try await self.fetcher.response(at: "\(scheme):///\(path)")
            #expect(String(decoding: response.body, as: UTF8.self) == name)
            #expect(response.status == 200)
        }
    }

    @Test func `a name that is no text is fetched`() async throws {
        let descriptor = open(self.directory.path(of: "root"), O_RDONLY | O_DIRECTORY)
        defer { close(descriptor) }
        let name: [CChar] = [CChar(bitPattern: 0xFF), CChar(bitPattern: 0xE9), 0]
        let file = openat(descriptor, name, O_WRONLY | O_CREAT, 0o600)
        #expect(write(file, "x", 1) == 1)
        close(file)
        #expect(try await self.fetcher.response(at: "local:///%FF%E9").body == Data("x".utf8))
    }

    @Test(arguments: [
        "local:///missing.jpg", "local:///folder/missing.jpg", "local:///folder", "local:///folder/", "local:///",
        "local://", "local:", "local:/folder/inner.jpg", "local://host/folder/inner.jpg",
        "local:///../secret.jpg", "local:///folder/../../secret.jpg", "local:///%2e%2e/secret.jpg",
        "local:///.%2E/secret.jpg", "local:///%2E./secret.jpg", "local:///..%2fsecret.jpg",
        "local:///folder%2Finner.jpg", "local:///folder/../folder/inner.jpg", "local:///./folder/inner.jpg",
        "local:///folder//inner.jpg", "local:////folder/inner.jpg", "local:///folder%5Cinner.jpg",
        "local:///folder%00/inner.jpg", "local:///folder/inner.jpg%00", "local:///folder/inner.jpg%00.png",
        "local:///folder/inner.jpg/", "local:///folder/inner.jpg/x", "local:///folder/%0Ainner.jpg",
        "local:///%252e%252e/secret.jpg", "local:///-private/a.jpg", "local:///../root-private/a.jpg",
        "local:///folder/inner.jpg#x", "file:///etc/passwd", "local:///etc/passwd", "local:///%2Fetc%2Fpasswd",
    ])
    func `a path that leaves the folder, or names no file, has the status 404`(text: String) async throws {
        let error = try await self.fetcher.error(at: text)
        #expect(error.code == .fileNotFound)
        #expect(error.status == 404)
        #expect(!error.message.contains(self.directory.path))
    }

    @Test func `a name or a path of any length is not found, and does not trap`() async throws {
        let paths = [
            String(repeating: "a", count: 300), String(repeating: "a/", count: 20_000) + "a",
            String(repeating: "%", count: 10_000), String(repeating: "folder/", count: 700) + "inner.jpg",
        ]
        for path in paths { #expect(try await self.fetcher.error(at: "local:///\(path)").status == 404) }
    }

    @Test func `no link is followed, wherever it is and leads`() async throws {
        let root = self.directory.path(of: "root")
        #expect(symlink("\(root)/folder/inner.jpg", "\(root)/inside.jpg") == 0)
        #expect(symlink("../secret.jpg", "\(root)/outside.jpg") == 0)
        #expect(symlink("folder", "\(root)/link") == 0)
        #expect(symlink("/", "\(root)/slash") == 0)
        #expect(symlink("/proc/self/root", "\(root)/magic") == 0)
        let etc = "etc/hostname"
        for path in ["inside.jpg", "outside.jpg", "link/inner.jpg", "slash/\(etc)", "magic/\(etc)", "link"] {
            let error = try await self.fetcher.error(at: "local:///\(path)")
            #expect(error.code == .fileNotFound && error.status == 404)
            #expect(
                error.message
                    == "The path \(path) has a symbolic link. The server does not follow links; use the path of the file."
            )
        }
    }

    @Test func `a file without permission, or in a folder without permission, is unreadable`() async throws {
        try self.directory.write("closed".utf8, to: "root/closed.jpg")
        try self.directory.write("closed".utf8, to: "root/closed/inner.jpg")
        for (name, mode) in [("root", 0o755), ("root/closed.jpg", 0), ("root/closed", 0)] as [(String, mode_t)] {
            #expect(chmod(self.directory.path(of: name), mode) == 0)
        }
        defer { chmod(self.directory.path(of: "root/closed"), 0o700) }
        let folder = try LocalFolder(path: self.directory.path(of: "root"))
        for text in ["closed.jpg", "closed/inner.jpg"] {
            let path = try #require(URL(string: "local:///\(text)").flatMap { LocalPath($0) })
            for open in [folder.open, folder.openByNames] {
                let code = try Self.withoutPrivileges {
                    #expect(open(path, O_RDONLY | O_CLOEXEC) == -1)
                    return errno
                }
                #expect(code == EACCES)
            }
            // The thread that reads has all permissions of root.
            guard geteuid() != 0 else { continue }
            let error = try await self.fetcher.error(at: "local:///\(text)")
            #expect(error.code == .fileUnreadable && error.status == nil)
        }
    }

    /// Runs `body` on this thread without the permissions of root.
    private static func withoutPrivileges<Result>(_ body: () -> Result) throws -> Result {
        guard geteuid() == 0 else { return body() }
        typealias SetUser = @convention(c) (uid_t) -> CInt
        // Only this thread changes its user: setfsuid is a function of Linux that Swift does not import.
        let setUser = unsafeBitCast(try #require(dlsym(nil, "setfsuid")), to: SetUser.self)
        _ = setUser(65_534)
        defer { _ = setUser(0) }
        return body()
    }

    @Test(arguments: ["pipe", "socket"])
    func `only ordinary files are served`(kind: String) async throws {
        let path = self.directory.path(of: "root/special")
        let type = kind == "pipe" ? S_IFIFO : S_IFSOCK
        #expect(mknod(path, type | 0o600, 0) == 0)
        let error = try await self.fetcher.error(at: "local:///special")
        #expect(error.status == 404 && error.message.contains("not an ordinary file"))
    }

    @Test func `without openat2 the same files are opened`() throws {
        let root = self.directory.path(of: "root")
        #expect(symlink("folder", "\(root)/link") == 0)
        #expect(symlink("folder/inner.jpg", "\(root)/file") == 0)
        let folder = try LocalFolder(path: root)
        for (text, code) in [
            ("folder/inner.jpg", 0), ("link/inner.jpg", ELOOP), ("file", ELOOP), ("folder/missing", ENOENT),
            ("missing/inner.jpg", ENOENT), ("folder/inner.jpg/x", ENOTDIR),
        ] {
            let url = try #require(URL(string: "local:///\(text)"))
            let path = try #require(LocalPath(url))
            let descriptor = folder.openByNames(path, flags: O_RDONLY | O_CLOEXEC)
            #expect(descriptor >= 0 ? code == 0 : errno == code)
            if descriptor >= 0 { close(descriptor) }
        }
    }

    @Test func `opening files leaves no descriptor open`() async throws {
        let folder = try LocalFolder(path: self.directory.path(of: "root"))
        let urls = try ["folder/inner.jpg", "folder/x/y", "folder"].map {
            try #require(URL(string: "local:///\($0)").flatMap { LocalPath($0) })
        }
        for path in urls {
            for _ in 0..<2_000 {
                for descriptor in [folder.open(path, flags: O_RDONLY), folder.openByNames(path, flags: O_RDONLY)]
                where descriptor >= 0 { close(descriptor) }
            }
        }
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        let count = descriptors.count { descriptor in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
            return target?.hasPrefix(self.directory.path) == true
        }
        // The roots of this folder and of the fetcher.
        #expect(count <= 2)
    }

    @Test func `the folder stays the same if another one takes its place`() async throws {
        let root = self.directory.path(of: "root")
        #expect(rename(root, self.directory.path(of: "old")) == 0)
        try self.directory.write("new".utf8, to: "root/folder/inner.jpg")
        #expect(try await self.fetcher.response(at: "local:///folder/inner.jpg").body == Data("inner".utf8))
    }

    @Test func `a file over the limit is not read`() async throws {
        let error = try await self.fetcher.error(at: "local:///folder/inner.jpg") { $0.maximumBodySize = 4 }
        #expect(error.code == .bodyTooLarge)
        let response = try await self.fetcher.response(at: "local:///folder/inner.jpg") { $0.maximumBodySize = 5 }
        #expect(response.body.count == 5)
    }

    @Test func `an empty file is an empty body`() async throws {
        try self.directory.write([], to: "root/empty")
        #expect(try await self.fetcher.error(at: "local:///empty").code == .emptyBody)
    }

    @Test func `a settled file is confirmed by its tag or its date, and a changed one is not`() async throws {
        let path = self.directory.path(of: "root/folder/inner.jpg")
        // No clock can set the time of a change, so the test waits until that is old enough.
        await until {
            var status = stat()
            return stat(path, &status) == 0 && time(nil) - status.st_ctim.tv_sec > 3
        }
        let whole = try await self.fetcher.response(at: "local:///folder/inner.jpg")
        let tag = try #require(whole.headers["ETag"])
        let date = try #require(whole.headers["Last-Modified"])
        let cases: [(HeaderFields, Int)] = [
            (["If-None-Match": tag], 304), (["If-None-Match": "\"x\", W/\(tag)"], 304), (["If-None-Match": "*"], 304),
            (["If-None-Match": "\"x\""], 200), (["If-None-Match": "\"x\"", "If-Modified-Since": date], 200),
            (["If-Modified-Since": date], 304), (["If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"], 200),
            (["If-Modified-Since": "never"], 200), ([:], 200),
        ]
        for (headers, status) in cases {
            let response = try await self.fetcher.response(at: "local:///folder/inner.jpg") { request in
                request.headers = headers
                request.acceptableStatusCodes = StatusCodes.success.union(304)
            }
            #expect(response.status == status)
            #expect(response.body.isEmpty == (status == 304))
            #expect(response.headers["ETag"] == tag)
        }
        let unconditional = try await self.fetcher.response(at: "local:///folder/inner.jpg") {
            $0.headers = ["If-None-Match": tag]
        }
        #expect(unconditional.status == 200)
        try self.directory.write("other".utf8, to: "root/folder/inner.jpg")
        let changed = try await self.fetcher.response(at: "local:///folder/inner.jpg") { request in
            request.headers = ["If-None-Match": tag]
            request.acceptableStatusCodes = StatusCodes.success.union(304)
        }
        #expect(changed.status == 200)
        #expect(changed.body == Data("other".utf8))
    }

    @Test(arguments: ["missing", "secret.jpg", "a\0b"])
    func `a root that is missing or no folder is refused`(name: String) {
        let error = #expect(throws: DownloadError.self) {
            try LocalFolderFetcher(root: self.directory.path(of: name), downloads: .public)
        }
        #expect(error?.message.contains("--local-root") == true)
    }

    @Test func `a read counts in the budget of bodies, and fails after the shutdown`() async throws {
        let downloads = DownloadActor.public
        let fetcher = try LocalFolderFetcher(root: self.directory.path(of: "root"), downloads: downloads)
        let response = try await fetcher.response(at: "local:///folder/inner.jpg")
        #expect(await downloads.counters.bodyBytes == 5)
        withExtendedLifetime(response) {}
        await downloads.shutdown()
        #expect(try await fetcher.error(at: "local:///folder/inner.jpg").code == .shutDown)
    }
}
