package weir;

import java.util.Map;
import org.wso2.transport.http.netty.contract.HttpClientConnector;
import org.wso2.transport.http.netty.contract.HttpWsConnectorFactory;
import org.wso2.transport.http.netty.contract.config.SenderConfiguration;
import org.wso2.transport.http.netty.message.HttpCarbonMessage;

/** What 6.3 says otherwise than 6.0. */
final class Release {
    private Release() {}

    /** A client, with one TLS context for all of its connections if it speaks TLS. */
    static HttpClientConnector client(HttpWsConnectorFactory factory, SenderConfiguration upstream) throws Exception {
        // The pieces of an answer's body, each of which is written by itself. The default is 8 KiB; 6.0 has no setting.
        upstream.getMsgSizeValidationConfig().setMaxChunkSize(64 * 1024);
        return upstream.getScheme().equals("https")
                ? factory.createHttpsClientConnector(Map.of(), upstream)
                : factory.createHttpClientConnector(Map.of(), upstream);
    }

    static void setStatus(HttpCarbonMessage answer, int status) {
        answer.setHttpStatusCode(status);
    }
}
