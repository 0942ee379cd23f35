import { z } from 'zod'
import { injectable, withRules, headerName, secretRef } from '../fields/index.ts'
import { FIRST_LOGIN, named, ORDINARY, type TypeRecord } from './type-record.ts'

/** Type `unauthenticated`: nothing is added, and it has no sub-object. */
export const unauthenticatedRecord = {
  ...ORDINARY,
  schema: undefined,
  secrets: () => [],
  files: () => [],
  summary: '',
  runsOn: 'route',
  credentialOf: () => 'nobody',
  asks: () => 'credential',
  init: { secrets: {}, callersHave: 'nothing' },
} satisfies TypeRecord<Readonly<Record<string, never>>>

/** `spec.bearerToken`. */
export const bearerToken = () =>
  z.strictObject({ tokenSecretRef: secretRef('bearer token').describe('Secret holding the bearer token.') })
export type BearerToken = z.output<ReturnType<typeof bearerToken>>

export const bearerTokenRecord = {
  ...ORDINARY,
  ...named(bearerToken),
  summary: 'Only with type bearerToken.',
  runsOn: 'route',
  credentialOf: () => 'proxy',
  asks: () => 'credential',
  init: { secrets: { 'backend/token': { ofLab: 'lab-bearer/token' } }, callersHave: 'nothing' },
  sets: () => [{ name: 'authorization', shown: 'Bearer (the secret)' }],
} satisfies TypeRecord<BearerToken>

/** `spec.headerInjection`. */
export const headerInjection = () =>
  withRules(
    z.strictObject({
      headerName: headerName().min(1).describe('Name of the HTTP header to inject.'),
      valueSecretRef: secretRef('header value').describe('Secret holding the header value.'),
    }),
    [injectable('headerName')],
  )
export type HeaderInjection = z.output<ReturnType<typeof headerInjection>>

export const headerInjectionRecord = {
  ...ORDINARY,
  ...named(headerInjection),
  summary: 'Only with type headerInjection.',
  runsOn: 'route',
  credentialOf: () => 'proxy',
  asks: () => 'credential',
  init: { secrets: { 'backend/api-key': { ofLab: 'lab-api-key/value' } }, callersHave: 'nothing' },
  sets: (spec) => [{ name: spec.headerName.toLowerCase(), shown: '(the secret)' }],
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
  asks: () => 'session',
  init: FIRST_LOGIN,
  sets: () => [{ name: 'authorization', shown: 'Bearer (the upstream token)' }],
  upstreamToken: ({ providerName: provider }) => ({
    field: 'providerName',
    provider,
    kind: 'access_token',
    ownTokenDoes: false,
  }),
  // The one type where a login at our side gives another credential.
  whenRejected: 'no_session',
} satisfies TypeRecord<UpstreamInject>
