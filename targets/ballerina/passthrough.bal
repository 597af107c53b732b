// After the study's service: forwards every request to the origin and returns its response.
import ballerina/http;
import ballerina/log;

configurable int listenPort = ?;
configurable int upstreamPort = ?;
configurable string clientSide = ?;
configurable string upstreamSide = ?;
configurable int pool = ?;
configurable string cert = ?;
configurable string key = ?;
configurable string ca = ?;
configurable string protocolVersion = ?;
configurable string suite = ?;

final boolean clientSideTls = clientSide == "h1";
final boolean upstreamSideTls = upstreamSide == "h1";
final string origin = string `${upstreamSideTls ? "https" : "http"}://localhost:${upstreamPort}`;

// Both sides are pinned to HTTP/1.1: since 2201 the default is HTTP/2.
listener http:Listener entry = new (listenPort,
    httpVersion = http:HTTP_1_1,
    host = "127.0.0.1",
    timeout = 3600,
    secureSocket = clientSideTls ? {
        'key: {certFile: cert, keyFile: key},
        protocol: {name: http:TLS, versions: [protocolVersion]},
        ciphers: [suite]
    } : ()
);

// The pool is as large as the number of clients; the certificate and its name are verified.
final http:Client upstream = check new (origin,
    httpVersion = http:HTTP_1_1,
    timeout = 3600,
    poolConfig = {maxIdleConnections: pool},
    secureSocket = upstreamSideTls ? {
        cert: ca,
        protocol: {name: http:TLS, versions: [protocolVersion]},
        ciphers: [suite]
    } : ()
);

service / on entry {
    resource function 'default [string... path](http:Request request) returns http:Response {
        // The headers that Weir adds, except X-Forwarded-For and X-Forwarded-Host.
        request.setHeader("X-Forwarded-Proto", clientSideTls ? "https" : "http");
        http:Response|error answer = upstream->forward(request.rawPath, request);
        if answer is http:Response {
            return answer;
        }
        log:printError("upstream", answer);
        http:Response failed = new;
        failed.statusCode = http:STATUS_BAD_GATEWAY;
        return failed;
    }
}
