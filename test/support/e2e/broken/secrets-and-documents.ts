import { generateKeyPairSync } from 'node:crypto'
import { authFile, ofProcess, proxyFile, section, type BrokenSetup } from './build.ts'

const unsupported = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
})
const fine = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })
const server = (
  name: string,
  more: string,
  needle: string,
  says: RegExp,
  secrets: BrokenSetup['files'],
): BrokenSetup => ({
  name: `embeddedAuthServer: ${name}`,
  files: {
    'proxy.yaml': proxyFile({
      spec: 'authServerRef: { name: login }\n  auth: { mode: oauth, oauth: { resourceUrl: "https://a", providers: [{ name: i, issuerUrl: "https://i", audience: a }] } }',
    }),
    'login.yaml': authFile(
      `type: embeddedAuthServer\n  embeddedAuthServer:\n    issuer: https://auth.example.com\n    ${more}\n    upstreamProviders: [{ name: up, type: oidc, ${name.includes('upstream') ? 'caBundleRef: { name: s, key: k }, ' : ''}oidcConfig: { issuerUrl: "https://i", clientId: c } }]`,
    ).replace('name: token', 'name: login'),
    ...secrets,
  },
  at: ['login.yaml', needle],
  routes: ['github'],
  says,
})

export const SERVERS: readonly BrokenSetup[] = [
  server(
    'a signing key that is none',
    'signingKeySecretRefs: [{ name: s, key: k }]',
    '{ name: s, key: k }]',
    /the signing key s\/k is not a private key in PEM/,
    { 'secrets/s/k': 'hello' },
  ),
  server(
    'a signing key of an unsupported curve',
    'signingKeySecretRefs: [{ name: s, key: k }]',
    '{ name: s, key: k }]',
    /the signing key s\/k is no RSA, P-256/,
    { 'secrets/s/k': unsupported },
  ),
  server(
    'a sealing secret that is too short',
    'hmacSecretRefs: [{ name: s, key: k }]',
    '{ name: s, key: k }]',
    /the HMAC secret s\/k has fewer than 32 bytes/,
    { 'secrets/s/k': 'short' },
  ),
  server(
    'a sealing secret that is too short, below a key whose name begins its own',
    'signingKeySecretRefs: [{ name: s, key: k }]\n    hmacSecretRefs: [{ name: s, key: k2 }]',
    '{ name: s, key: k2 }]',
    /the HMAC secret s\/k2 has fewer than 32 bytes/,
    { 'secrets/s/k': fine, 'secrets/s/k2': 'short' },
  ),
  server(
    'authorities of an upstream that are none',
    '',
    'caBundleRef',
    /secrets\/s\/k cannot be used: it holds no certificate/,
    { 'secrets/s/k': 'hello' },
  ),
]

const kvstore = (more: string): string =>
  `cache:\n    storage: { type: kvstore, kvstore: { aclUserConfig: { usernameSecretRef: { name: u, key: u }, passwordSecretRef: { name: u, key: p } }, sentinelConfig: { masterName: m, sentinelAddrs: ["127.0.0.1:1"] }${more} } }\n    keySecretRefs: [{ name: seal, key: k }]`

export const SHARED: readonly BrokenSetup[] = [
  ofProcess(
    'cache: a sealing secret that is too short',
    kvstore(''),
    '{ name: seal',
    /the sealing secret seal\/k has fewer than 32 bytes/,
    { 'secrets/seal/k': 'short' },
  ),
  ofProcess(
    'cache: authorities of the store that are none',
    kvstore(', tls: { caCertSecretRef: { name: c, key: k } }'),
    'caCertSecretRef',
    /secrets\/c\/k cannot be used: it holds no certificate/,
    { 'secrets/c/k': 'hello' },
  ),
]

export const DOCUMENTS: readonly BrokenSetup[] = [
  {
    name: 'a field of a route that is none',
    files: { 'proxy.yaml': proxyFile({ route: 'timeout: 5s' }) },
    at: ['proxy.yaml', 'timeout: 5s'],
    routes: ['github'],
    says: /unknown field "timeout", did you mean "timeouts"/,
  },
  {
    name: 'a reference that leads nowhere',
    files: { 'proxy.yaml': proxyFile().replace('name: token', 'name: tokn') },
    at: ['proxy.yaml', 'tokn'],
    routes: ['github'],
    says: /there is no MCPExternalAuthConfig "tokn".*did you mean "token"/,
  },
  {
    name: 'a text that is no YAML',
    files: { 'proxy.yaml': 'a: b: c\n' },
    at: ['proxy.yaml', 'b: c'],
    routes: [],
    says: /nested mappings are not allowed in compact mappings/,
  },
  {
    name: 'in a ConfigMap',
    files: {
      'proxy.yaml': `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: m }\ndata:\n  proxy.yaml: |\n${proxyFile({ route: 'targetTls: { caCertPath: ca.pem }' }).replace(/^(?=.)/gm, '    ')}`,
    },
    at: ['proxy.yaml', 'ca.pem'],
    routes: ['github'],
    says: /there is no file \S+ca\.pem/,
  },
]

const manifest = (callers: string): BrokenSetup['files'] => ({
  'proxy.yaml': `apiVersion: extauth.dev/v1alpha1\nkind: MCPRemoteProxy\nmetadata: { name: github }\nspec:\n  remoteUrl: https://127.0.0.1:1\n  externalAuthConfigRef: { name: token }\n  ${callers}\n`,
})

export const MANIFESTS: readonly BrokenSetup[] = [
  {
    name: 'oidcConfig of a manifest',
    files: manifest(
      'oidcConfig: { type: inline, inline: { issuer: "https://127.0.0.1:1", audience: a, thvCABundlePath: ca.pem } }',
    ),
    at: ['proxy.yaml', 'ca.pem'],
    routes: ['github'],
    says: /there is no file \S+ca\.pem/,
  },
  {
    name: 'auth of a manifest',
    files: manifest(`auth: ${section('authTokenFile: t.txt')}`),
    at: ['proxy.yaml', 't.txt'],
    routes: ['github'],
    says: /there is no file \S+t\.txt/,
  },
]

/** Those with the file of `--callers`. */
export const BROKEN_CALLERS: readonly BrokenSetup[] = [
  {
    name: 'authorities that are not there',
    files: { ...manifest(''), 'callers/c.yaml': `# who\nauth: ${section('caCertPath: ca.pem')}\n` },
    at: ['callers/c.yaml', 'ca.pem'],
    routes: ['github'],
    says: /there is no file \S+ca\.pem/,
  },
  {
    name: 'without "auth" before it',
    files: { ...manifest(''), 'callers/c.yaml': section('authTokenFile: t.txt') },
    at: ['callers/c.yaml', 't.txt'],
    routes: ['github'],
    says: /there is no file \S+t\.txt/,
  },
  {
    name: 'plain http to a provider',
    files: { ...manifest(''), 'callers/c.yaml': `auth: ${section('jwksUrl: "http://idp.example.com"')}` },
    at: ['callers/c.yaml', '"http://idp'],
    routes: [],
    says: /plain http is only used for loopback.*expected https/,
  },
  {
    name: 'a field that is none',
    files: { ...manifest(''), 'callers/c.yaml': `auth: ${section('issuer: x')}` },
    at: ['callers/c.yaml', 'issuer: x'],
    routes: [],
    says: /unknown field "issuer"/,
  },
]
