package weir;

import io.netty.channel.Channel;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.DefaultLastHttpContent;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import java.net.InetSocketAddress;
import org.wso2.transport.http.netty.contract.HttpClientConnector;
import org.wso2.transport.http.netty.contract.HttpConnectorListener;
import org.wso2.transport.http.netty.message.HttpCarbonMessage;

/** Passes each request to the origin and its answer back; bodies go through piece by piece, as they come. */
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
        Channel client = request.getSourceContext().channel();
        // The headers that Weir adds, so that all targets do the same work. Host is passed on as it is.
        String host = request.getHeader("Host");
        request.setHeader("X-Forwarded-For", ((InetSocketAddress) client.remoteAddress()).getAddress().getHostAddress());
        request.setHeader("X-Forwarded-Proto", scheme);
        if (host != null) {
            request.setHeader("X-Forwarded-Host", host);
        }
        request.setHeader("Via", "1.1 wso2");
        // The certificate carries this name beside the address.
        request.setProperty("host", "localhost");
        request.setProperty("port", port);
        origin.send(request).setHttpConnectorListener(new HttpConnectorListener() {
            @Override
            public void onMessage(HttpCarbonMessage answer) {
                answer.setHeader("Via", "1.1 wso2");
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
            System.err.println("answer: " + fault);
            request.getSourceContext().close();
        }
    }

    private static HttpCarbonMessage badGateway() {
        HttpResponseStatus status = HttpResponseStatus.BAD_GATEWAY;
        HttpCarbonMessage answer = new HttpCarbonMessage(new DefaultHttpResponse(HttpVersion.HTTP_1_1, status));
        Release.setStatus(answer, status.code());
        answer.addHttpContent(new DefaultLastHttpContent());
        return answer;
    }
}
