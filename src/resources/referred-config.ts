import { z } from 'zod'
import { later, metadata, type Metadata } from '../fields/index.ts'
import { externalAuthStatus, type ExternalAuthStatus } from './external-auth-status.ts'

/** A resource that workloads reference: `spec` by the author, `status` by the operator. */
export interface ReferredConfig<Kind extends string, Spec> {
  readonly apiVersion: string
  readonly kind: Kind
  readonly metadata: Metadata
  readonly spec: Spec
  readonly status?: ExternalAuthStatus | undefined
}

export const referredConfig = <Kind extends string, Spec extends z.ZodType>(kind: Kind, spec: Spec) =>
  z.strictObject({
    apiVersion: z.string(),
    kind: z.literal(kind),
    metadata: metadata(),
    spec,
    status: later(externalAuthStatus).optional(),
  })
