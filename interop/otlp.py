"""A receiver of traces made of the definitions that OpenTelemetry publishes (opentelemetry-proto).

Takes OTLP over HTTP in protobuf on a free port of this machine, whose number is the first line that it prints; after it, each
span that arrives is a line of JSON.
"""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

MOST_BYTES = 4 * 1024 * 1024


def value_of(value):
    kind = value.WhichOneof("value")
    return None if kind is None else str(getattr(value, kind))


def attributes_of(thing):
    return {one.key: value_of(one.value) for one in thing.attributes}


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        """The body, with a length or in chunks."""
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(min(MOST_BYTES, int(self.headers.get("content-length", "0"))))
        body = b""
        while len(body) < MOST_BYTES:
            size = int(self.rfile.readline(), 16)
            body += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                break
        return body

    def do_POST(self):
        body = self.body()
        if self.path != "/v1/traces" or self.headers.get("content-type") != "application/x-protobuf":
            self.send_error(415)
            return
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    line = {
                        "name": span.name,
                        "kind": span.kind,
                        "trace": span.trace_id.hex(),
                        "span": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
                        "attributes": attributes_of(span),
                        "resource": attributes_of(resource.resource),
                    }
                    print(json.dumps(line), flush=True)
        body = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(json.dumps({"port": server.server_port, "version": version("opentelemetry-proto")}), flush=True)
server.serve_forever()
