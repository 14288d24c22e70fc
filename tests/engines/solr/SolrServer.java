import java.util.Properties;
import org.apache.solr.client.solrj.embedded.JettyConfig;
import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** Solr over HTTP, in a home folder that the first argument names, until standard input ends. */
public class SolrServer {
    public static void main(String[] arguments) throws Exception {
        JettyConfig config = JettyConfig.builder().setContext("/solr").setPort(0).stopAtShutdown(true).build();
        JettySolrRunner server = new JettySolrRunner(arguments[0], new Properties(), config);
        server.start();
        System.out.println("port " + server.getLocalPort());
        System.out.flush();
        while (System.in.read() >= 0) {
        }
        server.stop();
        System.exit(0);
    }
}
