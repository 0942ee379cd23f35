/** A secret, whatever it is for. */
export const secret = { name: 'github', key: 'token' }

const tls = { certificateSecretRef: secret, keySecretRef: secret }
// prettier-ignore
export const CLIENTS: readonly (readonly [name: string, clientAuth: Readonly<Record<string, unknown>>])[] = [
  ['a secret by Basic', { method: 'clientSecretBasic', clientId: 'us', secretRef: secret }],
  ['a secret in the body', { method: 'clientSecretPost', clientId: 'us', secretRef: secret }],
  ['a key', { method: 'privateKeyJwt', clientId: 'us', key: { secretRef: secret } }],
  ['a key and all that can be said of it', { method: 'privateKeyJwt', clientId: 'us', assertionAudience: 'urn:idp', key: { secretRef: secret, algorithm: 'PS256', kid: 'a', certificateSecretRef: secret, legacyThumbprint: true, x5c: true } }],
  ['a projected token', { method: 'tokenFile', clientId: 'us', tokenFile: { path: '/var/run/token', type: 'jwt-bearer' } }],
  ['the token file of Azure', { method: 'tokenFile', clientId: 'us', tokenFile: {} }],
  ['a JWT-SVID', { method: 'tokenFile', tokenFile: { path: '/run/svid', type: 'jwt-spiffe' } }],
  ['a certificate in TLS', { method: 'tlsClient', clientId: 'us', tls }],
  ['nothing', { method: 'none', clientId: 'us' }],
]
/** Signs for the issuer, which has to be known. */
export const FOR_ISSUER = {
  method: 'privateKeyJwt',
  clientId: 'us',
  assertionAudience: 'issuer',
  key: { secretRef: secret },
}

const PARTS = { secretRef: secret, key: { secretRef: secret }, tokenFile: {}, tls }
const PART_OF = {
  clientSecretBasic: 'secretRef',
  clientSecretPost: 'secretRef',
  privateKeyJwt: 'key',
  tokenFile: 'tokenFile',
  tlsClient: 'tls',
} as const
type Wrong = readonly [name: string, clientAuth: unknown, problem: string]

/** Each method without its part, with that of each other, and with an audience that only assertions have. */
const MIXED: readonly Wrong[] = [...Object.entries(PART_OF), ['none', undefined] as const].flatMap(([method, part]) => {
  const bare = { method, clientId: 'us' }
  const own = part === undefined ? bare : { ...bare, [part]: PARTS[part] }
  const wrong = Object.entries(PARTS).map(([name, value]): Wrong =>
    name === part
      ? [`${method} without its ${name}`, bare, `.${name}`]
      : [`${method} with a ${name}`, Object.assign({ [name]: value }, own), `.${name}`],
  )
  const audience: Wrong = [`${method} with an audience`, { ...own, assertionAudience: 'urn:a' }, '.assertionAudience']
  return method === 'privateKeyJwt' ? wrong : wrong.concat([audience])
})

type Fields = readonly (readonly [field: string, value: unknown])[]
const KEY_FIELDS: Fields = [
  ['kid', ''],
  ['kid', 'a'.repeat(257)],
  ['legacyThumbprint', 'yes'],
  ['x5c', 1],
  ['certificateSecretRef', {}],
  ['algorithm', 'none'],
  ['secret', 'a'],
]
const FILE_FIELDS: Fields = [
  ['path', ''],
  ['path', 'a\nb'],
  ['type', 'jwt'],
  ['token', 'a.b.c'],
]

/** Parts that are not of their form. */
const MALFORMED: readonly Wrong[] = [
  ...['', 7, 'a'.repeat(2_049)].map((clientId): Wrong => [
    `an id that is none: ${String(clientId).slice(0, 5)}`,
    { method: 'none', clientId },
    '.clientId',
  ]),
  ...['text', {}, { name: 'a' }, { name: 'A B', key: 'a' }].map((value): Wrong => [
    `a secret that is none: ${JSON.stringify(value)}`,
    { method: 'clientSecretPost', clientId: 'us', secretRef: value },
    '.secretRef',
  ]),
  ...KEY_FIELDS.map(([field, value]): Wrong => [
    `a key with ${field} ${JSON.stringify(value).slice(0, 9)}`,
    { method: 'privateKeyJwt', clientId: 'us', key: { secretRef: secret, [field]: value } },
    `.key.${field}`,
  ]),
  ...['', 7].map((assertionAudience): Wrong => [
    `an audience that is none: ${assertionAudience}`,
    { method: 'privateKeyJwt', clientId: 'us', key: { secretRef: secret }, assertionAudience },
    '.assertionAudience',
  ]),
  ...FILE_FIELDS.map(([field, value]): Wrong => [
    `a file of a token with ${field} ${JSON.stringify(value)}`,
    { method: 'tokenFile', clientId: 'us', tokenFile: { [field]: value } },
    `.tokenFile.${field}`,
  ]),
  [
    'a key of no certificate',
    { method: 'tlsClient', clientId: 'us', tls: { keySecretRef: secret } },
    '.tls.certificateSecretRef  missing',
  ],
]

export const WRONG_CLIENTS: readonly Wrong[] = [
  ...MIXED,
  ...MALFORMED,
  ['no method', { clientId: 'us' }, '.method  missing'],
  ['an unknown method', { method: 'client_secret_basic', clientId: 'us' }, '.method'],
  ['an unknown field', { method: 'none', clientId: 'us', secret: 'a' }, '.secret'],
  ['text', 'none', ''],
  ['a key without secret', { method: 'privateKeyJwt', clientId: 'us', key: {} }, '.key.secretRef  missing'],
  [
    'an algorithm with a shared secret',
    { method: 'privateKeyJwt', clientId: 'us', key: { secretRef: secret, algorithm: 'HS256' } },
    '.key.algorithm',
  ],
  [
    'a token of another kind',
    { method: 'tokenFile', clientId: 'us', tokenFile: { type: 'saml2-bearer' } },
    '.tokenFile.type',
  ],
  [
    'a certificate without key',
    { method: 'tlsClient', clientId: 'us', tls: { certificateSecretRef: secret } },
    '.tls.keySecretRef  missing',
  ],
  ...['none', 'clientSecretBasic', 'privateKeyJwt', 'tlsClient'].map(
    (method) =>
      [
        `${method} without id`,
        { method, secretRef: secret, key: { secretRef: secret }, tls },
        '.clientId  missing',
      ] as const,
  ),
]
