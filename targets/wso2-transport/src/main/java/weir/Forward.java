package weir;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.DefaultLastHttpContent;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import org.wso2.transport.http.netty.contract.HttpClientConnector;
import org.wso2.transport.http.netty.contract.HttpConnectorListener;
import org.wso2.transport.http.netty.message.HttpCarbonMessage;

/**
 * Forwards each request to the origin and the response back. The response body is streamed.
 *
 * <p>A request is sent once it is complete. The transport stops sending a request when its response begins, and then
 * waits forever. With the test server, which echoes as it reads, this happened to 8 of 300 chunked requests of 10 kB,
 * and to most of those with 2 ms between pieces, in both releases. It also turns Content-Length into chunks when a body
 * has several pieces.
 */
final class Forward implements HttpConnectorListener {
    private final HttpClientConnector origin;
    private final int port;
    private final String scheme;

    Forward(HttpClientConnector origin, int port, boolean clientSideTls) {
        this.origin = origin;
        this.port = port;
        this.scheme = clientSideTls ? "https" : "http";
    }

    @Override
    public void onMessage(HttpCarbonMessage request) {
        // The same headers as Weir adds, so that all targets do the same work. Host is forwarded unchanged.
        String host = request.getHeader("Host");
        request.setHeader("X-Forwarded-For", client(request).getAddress().getHostAddress());
        request.setHeader("X-Forwarded-Proto", scheme);
        if (host != null) {
            request.setHeader("X-Forwarded-Host", host);
        } else {
            // The transport drops the authority of a request by HTTP/2.
            request.setHeader("Host", "localhost:" + port);
        }
        // The certificate has this name in addition to the address.
        request.setProperty("host", "localhost");
        request.setProperty("port", port);
        List<ByteBuf> body = new ArrayList<>();
        request.getHttpContentAsync().setMessageListener(piece -> {
            body.add(piece.content());
            if (piece instanceof LastHttpContent) {
                request.removeMessageFuture();
                request.addHttpContent(new DefaultLastHttpContent(Unpooled.wrappedBuffer(body.toArray(new ByteBuf[0]))));
                send(request);
            }
        });
    }

    private void send(HttpCarbonMessage request) {
        origin.send(request).setHttpConnectorListener(new HttpConnectorListener() {
            @Override
            public void onMessage(HttpCarbonMessage answer) {
                respond(request, answer);
            }

            @Override
            public void onError(Throwable fault) {
                System.err.println("upstream: " + fault);
                respond(request, badGateway());
            }
        });
    }

    @Override
    public void onError(Throwable fault) {
        System.err.println("client: " + fault);
    }

    private static void respond(HttpCarbonMessage request, HttpCarbonMessage answer) {
        try {
            request.respond(answer);
        } catch (Exception fault) {
            System.err.println("response: " + fault);
            if (request.getSourceContext() != null) {
                request.getSourceContext().close();
            }
        }
    }

    /** A request by HTTP/2 has no context of its connection. */
    private static InetSocketAddress client(HttpCarbonMessage request) {
        ChannelHandlerContext context = request.getSourceContext();
        Object address = context != null ? context.channel().remoteAddress() : request.getProperty("REMOTE_ADDRESS");
        return (InetSocketAddress) address;
    }

    private static HttpCarbonMessage badGateway() {
        HttpResponseStatus status = HttpResponseStatus.BAD_GATEWAY;
        HttpCarbonMessage answer = new HttpCarbonMessage(new DefaultHttpResponse(HttpVersion.HTTP_1_1, status));
        Release.setStatus(answer, status.code());
        answer.addHttpContent(new DefaultLastHttpContent());
        return answer;
    }
}
