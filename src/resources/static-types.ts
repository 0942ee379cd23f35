import { z } from 'zod'
import { injectable, withRules, headerName, type Rule, secretRef } from '../fields/index.ts'
import { FIRST_LOGIN, named, ORDINARY, type TypeRecord, type UpstreamTokenUse } from './type-record.ts'

/** A connection of the ProxyConfig: each caller's own credential instead of a secret. The route validates its name. */
const connectionName = () => z.string().max(63).optional().describe('Connection, instead of the secret.')

const oneCredential = (secret: string): Rule => ({
  message: 'expected the secret or "connectionName"',
  explain: (value) =>
    value[secret] === undefined
      ? `missing, expected "${secret}" or "connectionName"`
      : `expected either "${secret}" or "connectionName"`,
  at: secret,
  holds: (value) => (value[secret] === undefined) !== (value['connectionName'] === undefined),
  cel: `has(self.${secret}) != has(self.connectionName)`,
  json: { oneOf: [{ required: [secret] }, { required: ['connectionName'] }] },
})

const ofConnection = (provider: string | undefined): UpstreamTokenUse | undefined =>
  provider === undefined
    ? undefined
    : { field: 'connectionName', provider, kind: 'access_token', ownTokenDoes: false, source: 'connection' }

/** Type `unauthenticated`: adds nothing and has no sub-object. */
export const unauthenticatedRecord = {
  ...ORDINARY,
  schema: undefined,
  secrets: () => [],
  files: () => [],
  summary: '',
  runsOn: 'route',
  credentialOf: () => 'none',
  checkProbe: () => 'credential',
  init: { secrets: {}, callersHave: 'nothing' },
} satisfies TypeRecord<Readonly<Record<string, never>>>

/** `spec.bearerToken`. */
export const bearerToken = () =>
  withRules(
    z.strictObject({
      tokenSecretRef: secretRef('bearer token').optional().describe('Secret holding the bearer token.'),
      connectionName: connectionName(),
    }),
    [oneCredential('tokenSecretRef')],
  )
export type BearerToken = z.output<ReturnType<typeof bearerToken>>

export const bearerTokenRecord = {
  ...ORDINARY,
  ...named(bearerToken),
  summary: 'Only with type bearerToken.',
  runsOn: 'route',
  credentialOf: (spec) => (spec.connectionName === undefined ? 'proxy' : 'caller'),
  checkProbe: (spec) => (spec.connectionName === undefined ? 'credential' : 'session'),
  init: { secrets: { 'backend/token': { ofLab: 'lab-bearer/token' } }, callersHave: 'nothing' },
  sets: ({ connectionName: account }) => [
    { name: 'authorization', shown: account === undefined ? 'Bearer (the secret)' : `Bearer (connection ${account})` },
  ],
  upstreamToken: (spec) => ofConnection(spec.connectionName),
} satisfies TypeRecord<BearerToken>

/** `spec.headerInjection`. */
export const headerInjection = () =>
  withRules(
    z.strictObject({
      headerName: headerName().min(1).describe('Name of the HTTP header to inject.'),
      valueSecretRef: secretRef('header value').optional().describe('Secret holding the header value.'),
      connectionName: connectionName(),
    }),
    [injectable('headerName'), oneCredential('valueSecretRef')],
  )
export type HeaderInjection = z.output<ReturnType<typeof headerInjection>>

export const headerInjectionRecord = {
  ...ORDINARY,
  ...named(headerInjection),
  summary: 'Only with type headerInjection.',
  runsOn: 'route',
  credentialOf: (spec) => (spec.connectionName === undefined ? 'proxy' : 'caller'),
  checkProbe: (spec) => (spec.connectionName === undefined ? 'credential' : 'session'),
  init: { secrets: { 'backend/api-key': { ofLab: 'lab-api-key/value' } }, callersHave: 'nothing' },
  sets: ({ headerName: name, connectionName: account }) => [
    { name: name.toLowerCase(), shown: account === undefined ? '(the secret)' : `(connection ${account})` },
  ],
  upstreamToken: (spec) => ofConnection(spec.connectionName),
} satisfies TypeRecord<HeaderInjection>

/** `spec.upstreamInject`. */
export const upstreamInject = () =>
  z.strictObject({
    providerName: z
      .string()
      .min(1)
      .max(63)
      .describe('Upstream provider whose access token is injected as Authorization: Bearer.'),
  })
export type UpstreamInject = z.output<ReturnType<typeof upstreamInject>>

export const upstreamInjectRecord = {
  ...ORDINARY,
  ...named(upstreamInject),
  summary: 'Only with type upstreamInject.',
  runsOn: 'route',
  credentialOf: () => 'caller',
  checkProbe: () => 'session',
  init: FIRST_LOGIN,
  sets: () => [{ name: 'authorization', shown: 'Bearer (the upstream token)' }],
  upstreamToken: ({ providerName: provider }) => ({
    field: 'providerName',
    provider,
    kind: 'access_token',
    ownTokenDoes: false,
    source: 'login or connection',
  }),
  // Only for this type, a login at mcp-extauth obtains a new credential.
  whenRejected: 'no_session',
} satisfies TypeRecord<UpstreamInject>
