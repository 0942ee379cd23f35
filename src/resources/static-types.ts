import { z } from 'zod'
import { injectable, withRules } from './rules.ts'
import { headerName, secretRef } from './scalars.ts'

/** `spec.bearerToken`. */
export const bearerToken = () =>
  z.strictObject({ tokenSecretRef: secretRef().describe('Secret holding the bearer token.') })
export type BearerToken = z.output<ReturnType<typeof bearerToken>>

/** `spec.headerInjection`. */
export const headerInjection = () =>
  withRules(
    z.strictObject({
      headerName: headerName().min(1).describe('Name of the HTTP header to inject.'),
      valueSecretRef: secretRef().describe('Secret holding the header value.'),
    }),
    [injectable('headerName')],
  )
export type HeaderInjection = z.output<ReturnType<typeof headerInjection>>

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
