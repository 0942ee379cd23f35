import { readFileSync } from 'node:fs'
import path from 'node:path'

const CERTIFICATES = path.join(import.meta.dirname, '../../test/fixtures/tls')
const certificate = (name: string): string => path.join(CERTIFICATES, name)
export const AUTHORITY = certificate('ca.pem')
/** Certificate and key in one text, as HAProxy wants them. */
export const inOne = (): string =>
  ['server.pem', 'server.key'].map((name) => readFileSync(certificate(name), 'utf8')).join('\n')

export interface NginxPorts {
  /** To the proxy as nginx does by default: HTTP/1.0, a connection for each request. */
  readonly plain: number
  /** To the proxy over HTTP/1.1, connections kept. */
  readonly kept: number
  /** Behind the proxy, without and with TLS; connections end after few requests and a short rest. */
  readonly behind: number
  readonly behindTls: number
}

/** nginx before and behind a proxy at `proxy`, with the backend at `backend` (both `host:port`). */
export const nginxConfig = (ports: NginxPorts, proxy: string, backend: string): string => `
daemon off;
pid nginx.pid;
worker_processes 1;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  client_max_body_size 0;
  upstream kept { server ${proxy}; keepalive 64; }
  upstream backend { server ${backend}; keepalive 64; }
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  server {
    listen 127.0.0.1:${ports.plain};
    location / { proxy_pass http://${proxy}; }
  }
  server {
    listen 127.0.0.1:${ports.kept};
    location / {
      proxy_pass http://kept; proxy_http_version 1.1; proxy_buffering off; proxy_request_buffering off;
      proxy_set_header Host $http_host;
      proxy_set_header Connection $connection_upgrade; proxy_set_header Upgrade $http_upgrade;
      proxy_next_upstream off;
    }
  }
  server {
    listen 127.0.0.1:${ports.behind};
    listen 127.0.0.1:${ports.behindTls} ssl;
    ssl_certificate ${certificate('server.pem')};
    ssl_certificate_key ${certificate('server.key')};
    keepalive_timeout 1s; keepalive_requests 20;
    proxy_http_version 1.1; proxy_buffering off; proxy_request_buffering off;
    proxy_set_header Host $http_host;
    proxy_set_header Connection $connection_upgrade; proxy_set_header Upgrade $http_upgrade;
    location / { proxy_pass http://backend; }
    location /plain/small { client_max_body_size 1k; proxy_pass http://backend; }
  }
}
`

export interface HaproxyPorts {
  readonly before: number
  readonly behind: number
  readonly behindTls: number
}

/** HAProxy before and behind the same; `pem` is a file with certificate and key. */
export const haproxyConfig = (ports: HaproxyPorts, proxy: string, backend: string, pem: string): string => `
global
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout tunnel 60s
frontend before
  bind 127.0.0.1:${ports.before}
  option forwardfor
  default_backend proxy
backend proxy
  http-reuse always
  server one ${proxy}
frontend behind
  bind 127.0.0.1:${ports.behind}
  bind 127.0.0.1:${ports.behindTls} ssl crt ${pem}
  timeout http-keep-alive 500ms
  default_backend served
backend served
  http-reuse always
  server one ${backend}
`
