/** A secret, whatever it is for. */
export const secret = { name: 'github', key: 'token' }

const tls = { certificateSecretRef: secret, keySecretRef: secret }
// prettier-ignore
export const CLIENTS: readonly (readonly [name: string, clientAuth: Readonly<Record<string, unknown>>])[] = [
  ['a secret by Basic', { method: 'clientSecretBasic', clientId: 'us', secretRef: secret }],
  ['a secret in the body', { method: 'clientSecretPost', clientId: 'us', secretRef: secret }],
  ['a key', { method: 'privateKeyJwt', clientId: 'us', key: { secretRef: secret } }],
  ['a key and all that can be said of it', { method: 'privateKeyJwt', clientId: 'us', assertionAudience: 'issuer', key: { secretRef: secret, algorithm: 'PS256', kid: 'a', certificateSecretRef: secret, legacyThumbprint: true, x5c: true } }],
  ['a projected token', { method: 'tokenFile', clientId: 'us', tokenFile: { path: '/var/run/token', type: 'jwt-bearer' } }],
  ['the token file of Azure', { method: 'tokenFile', clientId: 'us', tokenFile: {} }],
  ['a JWT-SVID', { method: 'tokenFile', tokenFile: { path: '/run/svid', type: 'jwt-spiffe' } }],
  ['a certificate in TLS', { method: 'tlsClient', clientId: 'us', tls }],
  ['nothing', { method: 'none', clientId: 'us' }],
]
// prettier-ignore
export const WRONG_CLIENTS: readonly (readonly [name: string, clientAuth: unknown, problem: string])[] = [
  ['no method', { clientId: 'us' }, '.method  missing'],
  ['an unknown method', { method: 'client_secret_basic', clientId: 'us' }, '.method'],
  ['an unknown field', { method: 'none', clientId: 'us', secret: 'a' }, '.secret'],
  ['text', 'none', ''],
  ...['clientSecretBasic', 'clientSecretPost'].map((method) => [`${method} without secret`, { method, clientId: 'us' }, '.secretRef'] as const),
  ['privateKeyJwt without key', { method: 'privateKeyJwt', clientId: 'us' }, '.key'],
  ['a key without secret', { method: 'privateKeyJwt', clientId: 'us', key: {} }, '.key.secretRef  missing'],
  ['an algorithm with a shared secret', { method: 'privateKeyJwt', clientId: 'us', key: { secretRef: secret, algorithm: 'HS256' } }, '.key.algorithm'],
  ['tokenFile without file', { method: 'tokenFile', clientId: 'us' }, '.tokenFile'],
  ['a token of another kind', { method: 'tokenFile', clientId: 'us', tokenFile: { type: 'saml2-bearer' } }, '.tokenFile.type'],
  ['tlsClient without certificate', { method: 'tlsClient', clientId: 'us' }, '.tls'],
  ['a certificate without key', { method: 'tlsClient', clientId: 'us', tls: { certificateSecretRef: secret } }, '.tls.keySecretRef  missing'],
  ['none with a secret', { method: 'none', clientId: 'us', secretRef: secret }, '.secretRef'],
  ['a secret with a certificate', { method: 'clientSecretBasic', clientId: 'us', secretRef: secret, tls }, '.tls'],
  ['a secret with an audience', { method: 'clientSecretBasic', clientId: 'us', secretRef: secret, assertionAudience: 'issuer' }, '.assertionAudience'],
  ...['none', 'clientSecretBasic', 'privateKeyJwt', 'tlsClient'].map((method) => [`${method} without id`, { method, secretRef: secret, key: { secretRef: secret }, tls }, '.clientId  missing'] as const),
]
