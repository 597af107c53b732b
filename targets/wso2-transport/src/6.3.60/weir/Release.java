package weir;

import java.util.Map;
import org.wso2.transport.http.netty.contract.HttpClientConnector;
import org.wso2.transport.http.netty.contract.HttpWsConnectorFactory;
import org.wso2.transport.http.netty.contract.config.SenderConfiguration;
import org.wso2.transport.http.netty.message.HttpCarbonMessage;

/** The differences of 6.3 from 6.0. */
final class Release {
    private Release() {}

    /** A client; with TLS, all its connections share one context. */
    static HttpClientConnector client(HttpWsConnectorFactory factory, SenderConfiguration upstream) throws Exception {
        // Size of the pieces in which a response body is written. The default is 8 KiB; 6.0 has no setting.
        upstream.getMsgSizeValidationConfig().setMaxChunkSize(64 * 1024);
        return upstream.getScheme().equals("https")
                ? factory.createHttpsClientConnector(Map.of(), upstream)
                : factory.createHttpClientConnector(Map.of(), upstream);
    }

    static void setStatus(HttpCarbonMessage answer, int status) {
        answer.setHttpStatusCode(status);
    }
}
