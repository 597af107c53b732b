package weir;

import java.util.Map;
import org.wso2.transport.http.netty.contract.HttpClientConnector;
import org.wso2.transport.http.netty.contract.HttpWsConnectorFactory;
import org.wso2.transport.http.netty.contract.config.SenderConfiguration;
import org.wso2.transport.http.netty.message.HttpCarbonMessage;

/** What 6.0 says otherwise than 6.3. */
final class Release {
    private Release() {}

    /** A client; its TLS context is made anew for each connection by this release. */
    static HttpClientConnector client(HttpWsConnectorFactory factory, SenderConfiguration upstream) {
        return factory.createHttpClientConnector(Map.of(), upstream);
    }

    static void setStatus(HttpCarbonMessage answer, int status) {
        answer.setProperty("HTTP_STATUS_CODE", status);
    }
}
