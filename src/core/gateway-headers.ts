/**
 * Headers in which other gateways describe a caller. `token`: a credential for another service. `identity`: a user
 * name that backends behind that gateway trust.
 */
export interface GatewayHeader {
  /** Lower case, `-` for `_`; `*` at the end matches any rest. */
  readonly name: string
  readonly kind: 'token' | 'identity'
  /** The gateway that sets it, or its effect. */
  readonly why: string
}

const rows = (kind: GatewayHeader['kind'], table: Readonly<Record<string, string>>): readonly GatewayHeader[] =>
  Object.entries(table).flatMap(([why, names]) => names.split(' ').map((name) => ({ name, kind, why })))

/**
 * Gateway headers that are removed from callers' requests (decisions §3.1), with reasons: a backend would trust
 * whatever the caller wrote there. `routes[].passHeaders` allows an identity header; a token never passes.
 */
export const GATEWAY_HEADERS: readonly GatewayHeader[] = [
  ...rows('token', {
    'AWS load balancers: tokens and claims of the login': 'x-amzn-oidc-*',
    'oauth2-proxy: token of the login': 'x-auth-request-access-token x-forwarded-access-token x-forwarded-id-token',
    'API gateways: the Authorization that they replaced':
      'x-forwarded-authorization x-original-authorization x-authorization',
    'Cloudflare Access: signed identity, service tokens':
      'cf-access-jwt-assertion cf-access-token cf-access-client-id cf-access-client-secret',
    'Google: signed identity, and the token beside Authorization':
      'x-goog-iap-jwt-assertion x-goog-authenticated-user-jwt x-serverless-authorization',
    'Azure App Service: tokens of the login': 'x-ms-token-* x-zumo-auth',
    'Pomerium: signed identity': 'x-pomerium-jwt-assertion x-pomerium-assertion x-pomerium-authorization',
    'Kong, APISIX and other OpenID Connect plugins: tokens of the login':
      'x-id-token x-access-token x-refresh-token x-raw-id-token',
    'Vouch: tokens of the login': 'x-vouch-token x-vouch-idp-*',
    'mod_auth_openidc: tokens of the login': 'oidc-access-token oidc-id-token oidc-id-token-payload oidc-refresh-token',
    'WSO2, Teleport, authentik: signed identity': 'x-jwt-assertion teleport-jwt-assertion x-authentik-jwt x-jwt',
    'SiteMinder, WebSEAL: session and credential': 'sm-serversessionid sm-serversessionspec iv-creds',
  }),
  ...rows('identity', {
    'the user of web servers and portals': 'remote-user remote-group remote-groups remote-name remote-email',
    'the user of front proxies; Kubernetes, Jenkins': 'x-remote-*',
    'Kubernetes: impersonated user': 'impersonate-*',
    'the user of Grafana': 'x-webauth-*',
    'Azure App Service: user and claims': 'x-ms-client-principal*',
    'Google: user of the login, claims of the gateways':
      'x-goog-authenticated-user-* x-endpoint-api-userinfo x-apigateway-api-userinfo',
    'Cloudflare Access: user of the login': 'cf-access-authenticated-user-*',
    'Pomerium, Vouch, authentik: user and claims': 'x-pomerium-* x-vouch-* x-authentik-*',
    'Tailscale: user and device': 'tailscale-user-* tailscale-app-capabilities',
    'mod_auth_openidc, mod_auth_mellon, Shibboleth: claims': 'oidc-claim-* mellon-* shib-* eppn persistent-id',
    'Kong: consumer and credential':
      'x-consumer-* x-credential-identifier x-credential-username x-anonymous-consumer x-authenticated-*',
    'APISIX and others: claims of the login':
      'x-userinfo x-user-info x-jwt-payload x-auth-user x-auth-email x-proxy-user',
    'user headers of various gateways':
      'x-user x-user-id x-user-email x-user-name x-username x-user-groups x-user-roles',
    'SiteMinder, WebSEAL, Oracle Access Manager: user and groups':
      'sm-user sm-userdn smuser iv-user iv-user-l iv-groups oam-remote-user',
    'the certificate of the client at nginx, Apache and others':
      'ssl-client-* x-ssl-client-* x-client-cert x-client-cert-* x-client-certificate x-client-dn x-client-verify x-ssl-cert x-tls-client-*',
    'the certificate of the client (RFC 9440)': 'client-cert client-cert-chain',
    'the certificate of the client at Azure, AWS load balancers and Linkerd':
      'x-arr-clientcert x-amzn-mtls-* l5d-client-id',
  }),
]

const EXACT = new Map(GATEWAY_HEADERS.filter(({ name }) => !name.endsWith('*')).map((row) => [row.name, row]))
const BEGINNINGS = GATEWAY_HEADERS.filter(({ name }) => name.endsWith('*')).map(
  (row) => [row.name.slice(0, -1), row] as const,
)

/** A header name as gateways map it to a variable: lower case, `-` for everything but letters and digits. */
export const plainHeaderName = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '-')

/** The row of a header name in any spelling; a whole name before a beginning, tokens before identities. */
export function gatewayHeaderOf(name: string): GatewayHeader | undefined {
  const plain = plainHeaderName(name)
  return EXACT.get(plain) ?? BEGINNINGS.find(([beginning]) => plain.startsWith(beginning))?.[1]
}
