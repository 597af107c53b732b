package weir;

import java.util.Map;
import org.wso2.transport.http.netty.contract.HttpClientConnector;
import org.wso2.transport.http.netty.contract.HttpWsConnectorFactory;
import org.wso2.transport.http.netty.contract.config.SenderConfiguration;
import org.wso2.transport.http.netty.message.HttpCarbonMessage;

/** The differences of 6.0 from 6.3. */
final class Release {
    private Release() {}

    /** A client; this release creates a TLS context for each connection. */
    static HttpClientConnector client(HttpWsConnectorFactory factory, SenderConfiguration upstream) {
        return factory.createHttpClientConnector(Map.of(), upstream);
    }

    static void setStatus(HttpCarbonMessage answer, int status) {
        answer.setProperty("HTTP_STATUS_CODE", status);
    }
}
