import { z } from 'zod'
import { filePath, isRecord, type Rule, secretRef, type SecretRef, withRules } from '../fields/index.ts'

/** How a client authenticates at a token endpoint (RFC 6749 §2.3, RFC 7523 §2.2, RFC 8705 §2). */
const METHODS = ['clientSecretBasic', 'clientSecretPost', 'privateKeyJwt', 'tokenFile', 'tlsClient', 'none'] as const
type Method = (typeof METHODS)[number]

/**
 * Signature algorithms (decisions §2.3). `none` and HMAC are excluded: a key set can't publish a shared secret. `EdDSA`
 * means Ed25519.
 */
export const SIGNATURE_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

const assertionKey = () =>
  z.strictObject({
    secretRef: secretRef('client key').describe('Private key (JWK or PEM) that signs client assertions.'),
    algorithm: z
      .enum(SIGNATURE_ALGORITHMS)
      .optional()
      .describe('Default: that of the key; PS256 for an RSA key with a certificate, RS256 without.'),
    kid: z.string().min(1).max(256).optional().describe('Key identifier in the header; default that of the JWK.'),
    certificateSecretRef: secretRef('certificate chain')
      .optional()
      .describe('Certificate of the key (PEM); its SHA-256 thumbprint goes into the header as x5t#S256.'),
    legacyThumbprint: z.boolean().default(false).describe('Put the SHA-1 thumbprint into the header too, as x5t.'),
    x5c: z.boolean().default(false).describe('Put the certificate and its chain into the header.'),
  })

const tokenFile = () =>
  z.strictObject({
    path: filePath('token')
      .optional()
      .describe('File with the token, read again when it changes. Default: the one AZURE_FEDERATED_TOKEN_FILE names.'),
    type: z
      .enum(['jwt-bearer', 'jwt-spiffe'])
      .default('jwt-bearer')
      .describe('What the token is: of an issuer that is trusted for this client, or a JWT-SVID of SPIFFE.'),
  })

/** The part is required with these methods and not allowed with others. */
function goesWith(part: string, methods: readonly Method[]): Rule {
  const isOne = (method: unknown): boolean => methods.some((name) => name === method)
  const names = methods.map((name) => `"${name}"`).join(' or ')
  return {
    message: `"${part}" is required with method ${names}, and must be absent otherwise`,
    at: part,
    holds: (value) =>
      !METHODS.some((name) => name === value['method']) || isOne(value['method']) === (value[part] !== undefined),
    cel: `(self.method in [${methods.map((name) => `'${name}'`).join(', ')}]) == has(self.${part})`,
    json: {
      anyOf: [
        { properties: { method: { enum: [...methods] } }, required: ['method', part] },
        { properties: { method: { not: { enum: [...methods] } } }, not: { required: [part] } },
      ],
    },
  }
}

/** `clientAuth`: how mcp-extauth authenticates at an authorization server (decisions §3.9). */
export const clientAuth = () =>
  withRules(
    z.strictObject({
      method: z.enum(METHODS).describe('How the client authenticates.'),
      clientId: z.string().min(1).max(2048).optional().describe('Client identifier; only a tokenFile needs none.'),
      secretRef: secretRef().optional().describe('Client secret.'),
      key: assertionKey().optional().describe('Only with method privateKeyJwt.'),
      assertionAudience: z
        .string()
        .min(1)
        .max(2048)
        .optional()
        .describe(
          'Audience of assertions: tokenEndpoint, issuer, or a text. Default: the issuer where it is known, else the token endpoint.',
        ),
      tokenFile: tokenFile().optional().describe('Only with method tokenFile.'),
      tls: z
        .strictObject({
          certificateSecretRef: secretRef('certificate chain').describe(
            'Certificate of the client with its chain (PEM).',
          ),
          keySecretRef: secretRef('key of certificate').describe('Its private key (PEM).'),
        })
        .optional()
        .describe('Only with method tlsClient (RFC 8705).'),
    }),
    [
      {
        message: 'missing, only method "tokenFile" needs no "clientId"',
        at: 'clientId',
        holds: (value) => value['method'] === 'tokenFile' || value['clientId'] !== undefined,
        cel: "self.method == 'tokenFile' || has(self.clientId)",
        json: { anyOf: [{ properties: { method: { const: 'tokenFile' } } }, { required: ['clientId'] }] },
      },
      goesWith('secretRef', ['clientSecretBasic', 'clientSecretPost']),
      goesWith('key', ['privateKeyJwt']),
      goesWith('tokenFile', ['tokenFile']),
      goesWith('tls', ['tlsClient']),
      {
        message: 'only method "privateKeyJwt" has an "assertionAudience"',
        at: 'assertionAudience',
        holds: (value) => value['assertionAudience'] === undefined || value['method'] === 'privateKeyJwt',
        cel: "!has(self.assertionAudience) || self.method == 'privateKeyJwt'",
        json: {
          anyOf: [{ properties: { method: { const: 'privateKeyJwt' } } }, { not: { required: ['assertionAudience'] } }],
        },
      },
    ],
  )
export type ClientAuth = z.output<ReturnType<typeof clientAuth>>

/** The client identity in top-level fields (specification). */
export interface FlatClient {
  readonly clientAuth?: ClientAuth | undefined
  readonly clientId?: string | undefined
  readonly clientSecretRef?: SecretRef | undefined
  readonly clientAuthMethod?: 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt' | undefined
  readonly clientKeySecretRef?: SecretRef | undefined
}

/**
 * The client identity of a spec as `clientAuth`, from that object or top-level fields; undefined without a client
 * identity.
 */
export function clientAuthOf(spec: FlatClient): ClientAuth | undefined {
  const { clientId, clientSecretRef, clientKeySecretRef } = spec
  if (spec.clientAuth !== undefined) return spec.clientAuth
  if (clientId === undefined) return undefined
  if (spec.clientAuthMethod === 'private_key_jwt' && clientKeySecretRef !== undefined)
    return {
      method: 'privateKeyJwt',
      clientId,
      key: { secretRef: clientKeySecretRef, legacyThumbprint: false, x5c: false },
    }
  if (clientSecretRef === undefined) return { method: 'none', clientId }
  const method = spec.clientAuthMethod === 'client_secret_post' ? 'clientSecretPost' : 'clientSecretBasic'
  return { method, clientId, secretRef: clientSecretRef }
}

/** An assertion audience `issuer` needs a discovered issuer; the field `unless` provides one too. */
export function noIssuerToName(record = 'clientAuth', unless?: string): Rule {
  const found = unless === undefined ? '' : ` || has(self.${unless})`
  const wrong = { properties: { assertionAudience: { not: { const: 'issuer' } } } }
  return {
    message: 'no issuer is discovered here, expected "tokenEndpoint" or a text as "assertionAudience"',
    at: record,
    holds: (value) => {
      const client = value[record]
      return !isRecord(client) || client['assertionAudience'] !== 'issuer' || value[unless ?? ''] !== undefined
    },
    cel: `!has(self.${record}) || !has(self.${record}.assertionAudience) || self.${record}.assertionAudience != 'issuer'${found}`,
    json: {
      anyOf: [{ properties: { [record]: wrong } }, ...(unless === undefined ? [] : [{ required: [unless] }])],
    },
  }
}

/** A client certificate needs TLS (RFC 8705): the URLs in `urls` must be https. */
export function certificateNeedsTls(urls: readonly string[], record = 'clientAuth'): Rule {
  const isPlain = (url: unknown): boolean => typeof url === 'string' && /^http:/i.test(url)
  const named = urls.map((name) => `"${name}"`).join(' or ')
  return {
    message: `method "tlsClient" presents a certificate in TLS, expected an https URL as ${named}`,
    at: record,
    holds: (value) => {
      const client = value[record]
      const isCertificate = isRecord(client) && client['method'] === 'tlsClient'
      return !isCertificate || !urls.some((name) => isPlain(value[name]))
    },
    cel: `!has(self.${record}) || self.${record}.method != 'tlsClient' || (${urls
      .map((name) => `(!has(self.${name}) || !self.${name}.matches('^(?i)http:'))`)
      .join(' && ')})`,
    json: {
      anyOf: [
        { properties: { [record]: { properties: { method: { not: { const: 'tlsClient' } } } } } },
        {
          properties: Object.fromEntries(urls.map((name) => [name, { not: { pattern: '^[hH][tT][tT][pP]:' } }])),
        },
      ],
    },
  }
}

/** `record` and the top-level fields are mutually exclusive. Fields of `defaults` may have their default value. */
export function oneClient(
  flat: readonly string[],
  { record = 'clientAuth', defaults = {} }: { record?: string; defaults?: Readonly<Record<string, string>> } = {},
): Rule {
  const all = Object.entries(defaults)
  const names = [...flat, ...Object.keys(defaults)].map((name) => `"${name}"`).join(', ')
  const absent = flat.map((name) => `!has(self.${name})`)
  const usual = all.map(([name, value]) => `(!has(self.${name}) || self.${name} == '${value}')`)
  return {
    message: `"${record}" replaces ${names}: expected only one of the two forms`,
    at: record,
    holds: (value) =>
      value[record] === undefined ||
      (flat.every((name) => value[name] === undefined) &&
        all.every(([name, usualValue]) => value[name] === undefined || value[name] === usualValue)),
    cel: `!has(self.${record}) || (${[...absent, ...usual].join(' && ')})`,
    json: {
      anyOf: [
        { not: { required: [record] } },
        {
          not: { anyOf: flat.map((name) => ({ required: [name] })) },
          properties: Object.fromEntries(all.map(([name, value]) => [name, { const: value }])),
        },
      ],
    },
  }
}
