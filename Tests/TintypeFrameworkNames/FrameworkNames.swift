// SPDX-License-Identifier: Apache-2.0

// The type names that a program with a server framework imports: NIOCore and NIOHTTP1, HTTPTypes, AsyncHTTPClient,
// Hummingbird, and Vapor, which re-exports most of the others. Each type is only a name.

// swift-format-ignore-file

// NIOCore, NIOHTTP1, NIOSSL
public enum ByteBuffer {}
public enum Channel {}
public enum EventLoop {}
public enum EventLoopFuture {}
public enum HTTPClientRequestPart {}
public enum HTTPHeaders {}
public enum HTTPMethod {}
public enum HTTPParserError {}
public enum HTTPRequestHead {}
public enum HTTPResponseHead {}
public enum HTTPResponseStatus {}
public enum HTTPVersion {}
public enum IOData {}
public enum IOError {}
public enum SocketAddress {}
public enum TLSConfiguration {}
public enum TLSVersion {}
public enum TimeAmount {}

// HTTPTypes
public enum HTTPField {}
public enum HTTPFields {}
public enum HTTPRequest {}
public enum HTTPResponse {}

// AsyncHTTPClient
public enum HTTPClient {}
public enum HTTPClientError {}
public enum HTTPClientRequest {}
public enum HTTPClientResponse {}

// Hummingbird
public enum Application {}
public enum CacheControl {}
public enum Cookie {}
public enum Cookies {}
public enum Environment {}
public enum FileMiddleware {}
public enum FileProvider {}
public enum HTTPError {}
public enum LogRequestsMiddleware {}
public enum MediaType {}
public enum Parameters {}
public enum Request {}
public enum RequestBody {}
public enum RequestContext {}
public enum Response {}
public enum ResponseBody {}
public enum Router {}
public enum RouterGroup {}
public enum URI {}

// Vapor
public enum Abort {}
public enum Authenticator {}
public enum BasicAuthorization {}
public enum BearerAuthorization {}
public enum BodyStreamResult {}
public enum Cache {}
public enum CacheExpirationTime {}
public enum Client {}
public enum ClientRequest {}
public enum ClientResponse {}
public enum Content {}
public enum ContentConfiguration {}
public enum ErrorSource {}
public enum File {}
public enum FileIO {}
public enum HTTPCookies {}
public enum HTTPMediaType {}
public enum HTTPStatus {}
public enum Middleware {}
public enum Responder {}
public enum Route {}
public enum RouteCollection {}
public enum Server {}
public enum Session {}
public enum SessionData {}
public enum Storage {}
public enum Validatable {}
public enum Validations {}
public enum Validator {}
public enum ValidatorResult {}
public enum View {}
public enum WebSocket {}

// Their dependencies: Logging, Metrics, Crypto, ConsoleKit
public enum Command {}
public enum Console {}
public enum Counter {}
public enum Digest {}
public enum Gauge {}
public enum Logger {}
public enum ProgressBar {}
public enum SHA256 {}
public enum Terminal {}
