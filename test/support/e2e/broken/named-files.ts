import { generateKeyPairSync } from 'node:crypto'
import { TLS } from '../../tls.ts'
import { authFile, ofProcess, proxyFile, section, type BrokenSetup } from './build.ts'

const cutOff = TLS.ca.toString().split('\n').slice(0, -4).join('\n')
const damaged = TLS.ca.toString().replace(/\n[^-\n]{10}/, '\nAAAAAAAAAA')
const der = Buffer.from(TLS.ca.toString().replace(/-----[^-]+-----|\s/g, ''), 'base64')
const encrypted = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' },
}).privateKey

const route = (
  name: string,
  tls: string,
  needle: string,
  says: RegExp,
  files: BrokenSetup['files'] = {},
): BrokenSetup => ({
  name: `targetTls: ${name}`,
  files: { 'proxy.yaml': proxyFile({ route: `targetTls: { ${tls} }` }), ...files },
  at: ['proxy.yaml', needle],
  routes: ['github'],
  says,
})

const pair = (key: string) => `clientCertFile: c.pem, clientKeyFile: ${key}`
const client = { 'c.pem': TLS.client.cert }

export const TARGET_TLS: readonly BrokenSetup[] = [
  route(
    'authorities that are not there',
    'caCertPath: ca.pem',
    'ca.pem',
    /there is no file \S+\/ca\.pem; expected CA certificates/,
  ),
  route('an empty file', 'caCertPath: ca.pem', 'ca.pem', /ca\.pem cannot be used: it is empty, expected PEM/, {
    'ca.pem': '',
  }),
  route('text', 'caCertPath: ca.pem', 'ca.pem', /it holds no certificate, expected PEM that begins with/, {
    'ca.pem': 'hello',
  }),
  route('a key', 'caCertPath: ca.pem', 'ca.pem', /it holds a private key and no certificate/, {
    'ca.pem': TLS.server.key,
  }),
  route(
    'a certificate in DER',
    'caCertPath: ca.pem',
    'ca.pem',
    /binary \(DER\), expected PEM: convert it with "openssl x509/,
    { 'ca.pem': der },
  ),
  route('a certificate that is cut off', 'caCertPath: ca.pem', 'ca.pem', /it holds no certificate/, {
    'ca.pem': cutOff,
  }),
  route('a second one that is damaged', 'caCertPath: ca.pem', 'ca.pem', /certificate 2 of 2 in it cannot be read/, {
    'ca.pem': `${TLS.ca.toString()}${damaged}`,
  }),
  route('a directory', 'caCertPath: secrets', 'secrets }', /secrets is not a regular file; expected CA certificates/),
  route('a file that is too large', 'caCertPath: ca.pem', 'ca.pem', /ca\.pem is too large/, {
    'ca.pem': 'x'.repeat(1024 * 1024 + 1),
  }),
  route('no client certificate', pair('k.pem'), 'c.pem', /there is no file \S+c\.pem; expected a certificate in PEM/, {
    'k.pem': TLS.client.key,
  }),
  route('no client key', pair('k.pem'), 'k.pem', /there is no file \S+k\.pem; expected a private key in PEM/, client),
  route(
    'the key of another certificate',
    pair('k.pem'),
    'k.pem',
    /key of another certificate: \S+c\.pem and \S+k\.pem; both must be PEM and match/,
    { ...client, 'k.pem': TLS.server.key },
  ),
  route('a key with a passphrase', pair('k.pem'), 'k.pem', /its key is encrypted, expected one without passphrase/, {
    ...client,
    'k.pem': encrypted,
  }),
  route('a certificate as key', pair('k.pem'), 'k.pem', /it holds a certificate and no private key/, {
    ...client,
    'k.pem': TLS.client.cert,
  }),
]

export const LISTENERS: readonly BrokenSetup[] = [
  ofProcess(
    'listen.tls: no certificate',
    'listen: { tls: { certFile: l.crt, keyFile: l.key } }',
    'l.crt',
    /there is no file \S+l\.crt/,
    { 'l.key': TLS.server.key },
  ),
  ofProcess(
    'listen.tls: no key',
    'listen: { tls: { certFile: l.crt, keyFile: l.key } }',
    'l.key',
    /there is no file \S+l\.key/,
    { 'l.crt': TLS.server.cert },
  ),
  ofProcess(
    'listen.tls: a pair that is none',
    'listen: { tls: { certFile: l.crt, keyFile: l.key } }',
    'l.key',
    /l\.crt and \S+l\.key; both must be PEM and match/,
    { 'l.crt': TLS.server.cert, 'l.key': TLS.otherServer.key },
  ),
  ofProcess(
    'admin.tokenFile: not there',
    'admin: { tokenFile: t }',
    't }',
    /there is no file \S+\/t; expected a file with one token/,
  ),
  ofProcess('admin.tokenFile: blank', 'admin: { tokenFile: t }', 't }', /it is blank, expected a file with one token/, {
    t: ' \n',
  }),
  ofProcess(
    'admin.tokenFile: two words',
    'admin: { tokenFile: t }',
    't }',
    /it holds no bearer token, expected one token on one line/,
    { t: 'two words' },
  ),
]

const provider = (
  name: string,
  more: string,
  needle: string,
  says: RegExp,
  files: BrokenSetup['files'] = {},
): BrokenSetup => ({
  ...ofProcess(`auth: ${name}`, `auth: ${section(more)}`, needle, says, files),
  routes: ['github'],
})

export const PROVIDERS: readonly BrokenSetup[] = [
  provider('authorities that are not there', 'caCertPath: ca.pem', 'ca.pem', /there is no file \S+ca\.pem/),
  provider('authorities that are none', 'caCertPath: ca.pem', 'ca.pem', /it holds no certificate/, {
    'ca.pem': 'hello',
  }),
  provider(
    'no client secret',
    'clientId: c, clientSecretFile: s.txt',
    's.txt',
    /there is no file \S+s\.txt; expected a file with one secret/,
  ),
  provider(
    'a blank client secret',
    'clientId: c, clientSecretFile: s.txt',
    's.txt',
    /s\.txt cannot be used: it is blank/,
    { 's.txt': '\n' },
  ),
  provider('no token', 'authTokenFile: t.txt', 't.txt', /there is no file \S+t\.txt/),
  provider('a token that is none', 'authTokenFile: t.txt', 't.txt', /it holds no bearer token/, { 't.txt': 'a b' }),
  {
    name: 'auth of a route: authorities that are not there',
    files: { 'proxy.yaml': proxyFile({ route: `auth: ${section('caCertPath: ca.pem')}` }) },
    at: ['proxy.yaml', 'ca.pem'],
    routes: ['github'],
    says: /there is no file \S+ca\.pem/,
  },
]

const EXCHANGE = 'tokenUrl: "https://127.0.0.1:1", audience: a, clientId: c'
const STS = 'region: eu-central-1, fallbackRoleArn: "arn:aws:iam::123456789012:role/a"'
const OAUTH = section('jwksUrl: "https://127.0.0.1:1/jwks"')

const auth = (
  name: string,
  type: string,
  fields: string,
  needle: string,
  says: RegExp,
  files: BrokenSetup['files'] = {},
): BrokenSetup => ({
  name: `${type}: ${name}`,
  files: {
    'proxy.yaml': proxyFile({ spec: `auth: ${OAUTH}` }),
    'auth.yaml': authFile(`type: ${type}\n  ${type}: { ${fields} }`),
    ...files,
  },
  at: ['auth.yaml', needle],
  routes: ['github'],
  says,
})

export const TYPES: readonly BrokenSetup[] = [
  auth(
    'authorities that are not there',
    'tokenExchange',
    `${EXCHANGE}, caCertPath: ca.pem`,
    'ca.pem',
    /there is no file \S+ca\.pem/,
  ),
  auth('authorities that are none', 'cloudSts', `${STS}, caCertPath: ca.pem`, 'ca.pem', /it holds no certificate/, {
    'ca.pem': 'x',
  }),
  auth('under its other name', 'awsSts', `${STS}, caCertPath: ca.pem`, 'ca.pem', /there is no file \S+ca\.pem/),
  auth(
    'a key that can not sign',
    'tokenExchange',
    `${EXCHANGE}, clientAuthMethod: private_key_jwt, clientKeySecretRef: { name: k, key: pem }`,
    'clientKeySecretRef',
    /secrets\/k\/pem cannot be used: it is not a private signing key/,
    { 'secrets/k/pem': 'hello' },
  ),
  auth(
    'a key that can not sign with the algorithm',
    'tokenExchange',
    'tokenUrl: "https://127.0.0.1:1", audience: a, clientAuth: { method: privateKeyJwt, clientId: us, key: { secretRef: { name: k, key: pem }, algorithm: RS256 } }',
    'secretRef',
    /secrets\/k\/pem cannot be used: its key \(EC \S+\) cannot sign with RS256, only with ES\d+/,
    { 'secrets/k/pem': TLS.client.key },
  ),
  auth(
    'a field that is none',
    'bearerToken',
    'tokenSecretRef: { name: a, key: b }, tokn: 1',
    'tokn',
    /unknown field "tokn"/,
  ),
]
