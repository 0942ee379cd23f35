import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.common.McpTransportContext;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures;
import io.modelcontextprotocol.server.McpStatelessServerFeatures;
import io.modelcontextprotocol.server.transport.HttpServletStatelessServerTransport;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.Implementation;
import io.modelcontextprotocol.spec.McpSchema.ProgressNotification;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.Servlet;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.http.HttpClient;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/**
 * The official MCP SDK for Java as a server and as a client.
 *
 * <p>It serves MCP with and without sessions, prints one line of JSON that says where and with which version, then reads cases
 * from standard input and prints what did not go as it should, as JSON. Its one argument is a folder for Tomcat.
 */
public final class Peers {
  private static final McpJsonMapper JSON = McpJsonDefaults.getMapper();
  private static final Implementation SELF = Implementation.builder("peers", "1.0.0").build();
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final int STEPS = 4;
  private static final int LARGE_BYTES = 1 << 20;
  private static final Map<String, Object> ANYTHING = Map.of("type", "object");

  /** What has reached the servers since it was last asked: credentials of all methods, and ends of sessions. */
  private static final class Witness implements Filter {
    final Set<String> shown = ConcurrentHashMap.newKeySet();
    final AtomicInteger ended = new AtomicInteger();

    @Override
    public void doFilter(ServletRequest incoming, ServletResponse outgoing, FilterChain chain)
        throws IOException, ServletException {
      HttpServletRequest request = (HttpServletRequest) incoming;
      shown.add(credentials(request));
      chain.doFilter(incoming, outgoing);
      if (request.getMethod().equals("DELETE") && ((HttpServletResponse) outgoing).getStatus() == 200) {
        ended.incrementAndGet();
      }
    }
  }

  private final Witness witness = new Witness();
  private int clients;

  private static String credentials(HttpServletRequest request) {
    return String.join(", ", Collections.list(request.getHeaders("Authorization")));
  }

  private static McpTransportContext contextOf(HttpServletRequest request) {
    return McpTransportContext.create(Map.of("credentials", credentials(request)));
  }

  private static CallToolResult text(String said) {
    return CallToolResult.builder().addTextContent(said).build();
  }

  private static CallToolResult show(McpTransportContext context) {
    return text("POST / " + context.get("credentials"));
  }

  private static CallToolResult large(CallToolRequest request) {
    return text("x".repeat(number(request, "bytes")));
  }

  private static int number(CallToolRequest request, String name) {
    return ((Number) request.arguments().get(name)).intValue();
  }

  private static Tool tool(String name) {
    return Tool.builder(name, ANYTHING).build();
  }

  /** Has the tools of the lab's servers that conversations use. */
  private static Servlet withSessions() {
    var transport =
        HttpServletStreamableServerTransportProvider.builder()
            .mcpEndpoint("/sessions")
            .contextExtractor(Peers::contextOf)
            .build();
    McpServer.sync(transport)
        .serverInfo(SELF)
        .tools(
            new McpServerFeatures.SyncToolSpecification(
                tool("show_request"), (exchange, request) -> show(exchange.transportContext())),
            new McpServerFeatures.SyncToolSpecification(
                tool("stream_progress"),
                (exchange, request) -> {
                  int steps = number(request, "steps");
                  for (int step = 1; step <= steps; step++) {
                    pause(number(request, "intervalMs"));
                    exchange.progressNotification(
                        ProgressNotification.builder(request.progressToken(), step).total((double) steps).build());
                  }
                  return text("done");
                }),
            new McpServerFeatures.SyncToolSpecification(
                tool("large_result"), (exchange, request) -> large(request)))
        .build();
    return transport;
  }

  /** Its tools can't tell of their progress: the SDK gives them nobody to tell. */
  private static Servlet stateless() {
    var transport =
        HttpServletStatelessServerTransport.builder()
            .messageEndpoint("/stateless")
            .contextExtractor(Peers::contextOf)
            .build();
    McpServer.sync(transport)
        .serverInfo(SELF)
        .tools(
            new McpStatelessServerFeatures.SyncToolSpecification(
                tool("show_request"), (context, request) -> show(context)),
            new McpStatelessServerFeatures.SyncToolSpecification(
                tool("large_result"), (context, request) -> large(request)))
        .build();
    return transport;
  }

  private static void pause(int milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  /** Serves on loopback and gives the port. */
  private int serve(String folder) throws Exception {
    Logger.getLogger("org.apache").setLevel(Level.SEVERE);
    Tomcat tomcat = new Tomcat();
    tomcat.setBaseDir(folder);
    tomcat.setHostname("127.0.0.1");
    tomcat.setPort(0);
    tomcat.getConnector().setProperty("address", "127.0.0.1");
    Context context = tomcat.addContext("", folder);
    FilterDef filter = new FilterDef();
    filter.setFilterName("witness");
    filter.setFilter(witness);
    filter.setAsyncSupported("true");
    context.addFilterDef(filter);
    FilterMap everything = new FilterMap();
    everything.setFilterName("witness");
    everything.addURLPattern("/*");
    context.addFilterMap(everything);
    for (var entry : Map.of("sessions", withSessions(), "stateless", stateless()).entrySet()) {
      Tomcat.addServlet(context, entry.getKey(), entry.getValue()).setAsyncSupported(true);
      context.addServletMappingDecoded("/" + entry.getKey(), entry.getKey(), false);
    }
    tomcat.start();
    return tomcat.getConnector().getLocalPort();
  }

  /**
   * One client at one URL, with the caller's own token. {@code shows} is what the server must have been shown, empty where it
   * does not tell; {@code progress} says whether its tools tell of theirs, {@code sessions} whether it is ours and has them.
   */
  private record Conversation(String name, String url, String token, String shows, boolean progress, boolean sessions) {}

  /** Begins, lists, calls, streams and ends; gives what went wrong. */
  private String converse(Conversation wanted) throws InterruptedException {
    witness.shown.clear();
    witness.ended.set(0);
    BlockingQueue<Double> progress = new LinkedBlockingQueue<>();
    // Every other client asks for HTTP/2 by an upgrade, as Java's own does unless it is told otherwise.
    HttpClient.Version version = ++clients % 2 == 0 ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1;
    var transport =
        HttpClientStreamableHttpTransport.builder(wanted.url)
            .endpoint(wanted.url)
            .customizeClient(client -> client.version(version))
            .addHttpRequestCustomizer(
                (builder, method, uri, body, context) -> builder.header("Authorization", "Bearer " + wanted.token))
            .build();
    var client =
        McpClient.sync(transport)
            .clientInfo(SELF)
            .requestTimeout(LIMIT)
            .initializationTimeout(LIMIT)
            .progressConsumer(one -> progress.add(one.progress()))
            .build();
    try {
      client.initialize();
      if (client.listTools().tools().stream().noneMatch(one -> one.name().equals("show_request"))) {
        return "lists no tools";
      }
      String shown = call(client.callTool(CallToolRequest.builder("show_request").arguments(Map.of()).build()));
      if (!shown.startsWith("POST /")) return "calls no tool";
      if (!wanted.shows.isEmpty() && !shown.equals("POST / " + wanted.shows)) {
        return "is not called with the route's credential alone";
      }
      if (wanted.progress) {
        client.callTool(
            CallToolRequest.builder("stream_progress")
                .arguments(Map.of("steps", STEPS, "intervalMs", 50))
                .progressToken("progress")
                .build());
        // Notifications are handled beside the result and beside each other.
        Set<Double> seen = new TreeSet<>();
        for (int step = 1; step <= STEPS; step++) {
          Double one = progress.poll(LIMIT.toSeconds(), TimeUnit.SECONDS);
          if (one == null) return "gets no more progress than " + seen;
          seen.add(one);
        }
        if (!seen.equals(Set.of(1.0, 2.0, 3.0, 4.0))) return "gets progress " + seen;
      }
      String large =
          call(client.callTool(CallToolRequest.builder("large_result").arguments(Map.of("bytes", LARGE_BYTES)).build()));
      if (large.length() != LARGE_BYTES) return "gets no large result";
      if (!client.closeGracefully()) return "does not end in time";
      if (wanted.shows.isEmpty()) return "";
      if (witness.ended.get() != (wanted.sessions ? 1 : 0)) return "ends " + witness.ended + " sessions";
      // By any request: the first, the last, and the one that waits for what the server says.
      return witness.shown.equals(Set.of(wanted.shows)) ? "" : "shows other credentials too";
    } finally {
      client.close();
    }
  }

  private static String call(CallToolResult result) {
    if (result.content().size() != 1 || !(result.content().get(0) instanceof TextContent content)) {
      throw new IllegalStateException("no text came");
    }
    return content.text();
  }

  private static String reason(Throwable problem) {
    Set<String> told = new TreeSet<>();
    for (Throwable each = problem; each != null; each = each.getCause()) told.add(String.valueOf(each.getMessage()));
    return String.join("; ", told);
  }

  public static void main(String[] args) throws Exception {
    Peers peers = new Peers();
    int port = peers.serve(args[0]);
    String version = McpClient.class.getPackage().getImplementationVersion();
    say(Map.of("url", "http://127.0.0.1:" + port, "version", String.valueOf(version)));
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Conversation wanted = JSON.readValue(line, Conversation.class);
      String wrong;
      try {
        wrong = peers.converse(wanted);
      } catch (RuntimeException | InterruptedException problem) {
        wrong = reason(problem);
      }
      say(Map.of("wrong", wrong.isEmpty() ? "" : wanted.name + ": " + wrong));
    }
    System.exit(0);
  }

  private static void say(Map<String, String> what) throws IOException {
    System.out.println(JSON.writeValueAsString(what));
  }
}
